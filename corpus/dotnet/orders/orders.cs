// Handles as many requests as each line of its input says, and logs each of them. With a port it is
// a web service as well: GET /orders/N is a request, handled by a thread of the pool.
using System;
using System.Diagnostics;
using System.Net;
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
            var path = "/orders/" + n;
            var now = Stopwatch.GetTimestamp();
            var result = server.Handle(path, order, 1000000000000L + n);
            Console.WriteLine(path + " " + order.Id + " " + order.Customer + " " + now);
            return result + Server.Idle(n) + Server.Same("text", n);
        }

        // Objects move: each 300th answer lets the collector compact the heap.
        static void Answer(Server server, HttpListenerContext context) {
            int n = int.Parse(context.Request.Url.LocalPath.Substring("/orders/".Length));
            var garbage = new byte[1000 + n % 5000];
            var answer = System.Text.Encoding.ASCII.GetBytes("" + Request(server, n));
            if (n % 300 == 0) GC.Collect(2, GCCollectionMode.Forced, true, true);
            context.Response.Close(answer, true);
            GC.KeepAlive(garbage);
        }

        static void Serve(Server server, string port) {
            var listener = new HttpListener();
            listener.Prefixes.Add("http://127.0.0.1:" + port + "/");
            listener.Start();
            new Thread(() => {
                for (;;) {
                    var context = listener.GetContext();
                    ThreadPool.QueueUserWorkItem(_ => Answer(server, context));
                }
            }) { IsBackground = true }.Start();
        }

        public static int Main(string[] arguments) {
            var server = new Server();
            int n = 0, sum = Request(server, n++);
            if (arguments.Length > 0) Serve(server, arguments[0]);
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
