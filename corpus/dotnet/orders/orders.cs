// Handles as many requests as each line of its input says, and logs each of them.
using System;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Shop {
    public enum State { Open, Paid = 3 }

    public class Order {
        public int Id;
        public string Customer;
        public double Total;
        public State State;
    }

    public class Server {
        readonly string name = "server-1";

        [MethodImpl(MethodImplOptions.NoInlining)]
        public int Handle(string path, Order order, long n) {
            return path.Length + order.Id + (int)n + name.Length;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static int Idle(int n) { return n; }

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static int Never(int n) { return n; }

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static int Same<T>(T one, int n) { return one.GetHashCode() + n; }
    }

    public static class Program {
        static int Request(Server server, int n) {
            var order = new Order {
                Id = n, Customer = "customer " + n, Total = n / 2.0, State = n % 2 == 0 ? State.Open : State.Paid
            };
            var result = server.Handle("/orders/" + n, order, 1000000000000L + n);
            Console.WriteLine("/orders/" + n + " " + order.Id + " " + order.Customer);
            return result + Server.Idle(n) + Server.Same("text", n);
        }

        public static int Main(string[] arguments) {
            var server = new Server();
            int n = 0, sum = Request(server, n++);
            Console.WriteLine("ready");
            for (string line; (line = Console.ReadLine()) != null;) {
                for (int left = int.Parse(line); left > 0; left--) {
                    sum += Request(server, n++);
                    Thread.Sleep(1);
                }
                Console.WriteLine("done");
            }
            return arguments.Length > 5 ? sum : 0;
        }
    }
}
