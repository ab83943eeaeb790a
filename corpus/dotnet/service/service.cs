// A service of two providers, as a web server calls them: it answers a few requests of its own.
using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;

namespace Service.Providers {
    public class EchoProvider {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public string calculateEchoValue(string echo) { return echo; }
    }

    public class FibonacciProvider {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public int calculateFibonacciValue(int pos) {
            int before = 0, found = 1;
            for (int i = 0; i < pos; i++) {
                int sum = before + found;
                before = found;
                found = sum;
            }
            return found;
        }
    }
}

namespace Service {
    public enum Kind { Echo, Fibonacci }

    public class Request {
        public Kind Kind { get; set; }
        public string Path { get; set; }
        public List<string> Parameters = new List<string>();
    }

    public class Server {
        Providers.EchoProvider echo = new Providers.EchoProvider();
        Providers.FibonacciProvider fibonacci = new Providers.FibonacciProvider();
        int answered;

        [MethodImpl(MethodImplOptions.NoInlining)]
        public string Answer(Request request) {
            answered++;
            string first = request.Parameters[0];
            return request.Kind == Kind.Echo
                ? echo.calculateEchoValue(first)
                : fibonacci.calculateFibonacciValue(int.Parse(first)).ToString();
        }

        public static int Main(string[] args) {
            var server = new Server();
            var lines = new[] { "echo abc", "echo abcdefghijklmno", "fibonacci 3", "fibonacci 10" };
            foreach (string line in lines) {
                string[] words = line.Split(' ');
                var request = new Request {
                    Kind = words[0] == "echo" ? Kind.Echo : Kind.Fibonacci, Path = "/api/" + words[0],
                };
                request.Parameters.Add(words[1]);
                Console.WriteLine(server.Answer(request));
            }
            return server.answered == lines.Length ? 0 : 1;
        }
    }
}
