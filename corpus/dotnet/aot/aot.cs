// Methods of its own that print what a trace of each call has to show: the method and its values,
// as JSON. Compiled ahead of time by Mono.
using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;

public enum Colour { Red = 1, Green = -2 }
public struct Point { public int X, Y; }
public struct Wide { public long A; public byte B; public int C; }
public struct Real { public double D; public int I; }
public struct Half { public double D; }
public struct Big { public long A, B, C; }

public class Base {
    protected byte tag = 7;
    public string Name { get; set; }
}

public class Request : Base {
    public int Age;
    public Request Next;
    public Point At;
    public List<int> Numbers;
    public string[] Words;
    public bool Last;
}

public class EchoProvider {
    [MethodImpl(MethodImplOptions.NoInlining)]
    public string calculateEchoValue(string echo) { return echo; }
}

public class Holder<T> {
    public T Held;
    public int Tail;

    public class Pair<U> {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static int Join(T first, int between, U last) { return between; }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public int Hold(T next, int count) { return Tail + count; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static V Choose<V>(T key, List<V> of, int at) { return of[at]; }
}

public class Server {
    [MethodImpl(MethodImplOptions.NoInlining)]
    public int Handle(Request request, Point at, Colour colour, short small) {
        return request.Age + at.X + (int)colour + small;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static Big Make(Request request, Wide wide, int last) {
        return new Big { A = wide.A, B = wide.C, C = last };
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public Big Spread(Real real, int a, int b, Wide wide, int c) {
        return new Big { A = real.I, B = a + b + wide.C, C = c };
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static Big Plain(int first, Big big, int last) { return big; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Parts(ArraySegment<int> some, ArraySegment<string> words, Queue<int> waiting,
                            Queue<string> named) {
        return some.Count + words.Count + waiting.Count + named.Count;
    }

    // One symbol for two methods.
    public static int Same(int value) { return value; }
    public static int Same_int() { return 1; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static Point Corner(int x) { return new Point { X = x, Y = -x }; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static Half Halved(int x) { return new Half { D = x + 0.5 }; }
}

public class Program {
    static void Told(string method, string values) {
        Console.WriteLine("EVENT {\"method\": \"" + method + "\", \"values\": [" + values + "]}");
    }

    public static int Main(string[] args) {
        var echo = new EchoProvider();
        var server = new Server();
        string[] texts = { "hello", "", "a longer text of some forty characters...", null };
        foreach (string text in texts) {
            Told("calculateEchoValue", text == null ? "null" : "\"" + text + "\"");
            echo.calculateEchoValue(text);
        }
        for (int i = 0; i < 3; i++) {
            var request = new Request {
                Name = "n" + i, Age = 40 + i, At = new Point { X = i, Y = -i },
                Numbers = new List<int> { i, -i, 100 * i }, Words = new[] { "w" + i, null },
                Last = i == 2, Next = new Request { Name = "next", Age = -i },
            };
            var wide = new Wide { A = i * 10000000000L, B = (byte)(250 + i), C = -100 * i };
            Told("Handle", "\"n" + i + "\", " + (40 + i) + ", " + -i + ", 3, [" + i + ", " + -i + ", "
                + 100 * i + "], 2, [\"w" + i + "\", null], " + (i == 2 ? "true" : "false") + ", " + -i
                + ", " + i + ", " + 2 * i + ", {\"name\": \"Green\", \"value\": -2}, " + (-5 - i));
            server.Handle(request, new Point { X = i, Y = 2 * i }, Colour.Green, (short)(-5 - i));
            Told("Make", (40 + i) + ", " + wide.A + ", " + wide.B + ", " + wide.C + ", " + 7 * i);
            Server.Make(request, wide, 7 * i);
            Told("Spread", (5 + i) + ", 1, 2, " + wide.A + ", " + wide.C + ", " + i);
            server.Spread(new Real { D = 0.5, I = 5 + i }, 1, 2, wide, i);
            Told("Plain", i + ", " + (3 + i) + ", " + (i + 1));
            Server.Plain(i, new Big { A = 1, B = 2, C = 3 + i }, i + 1);
            // Of a queue of four, some behind the end of its array.
            var waiting = new Queue<int>(4);
            var named = new Queue<string>(4);
            for (int j = 0; j < 4 + i; j++) {
                if (j > 1) {
                    waiting.Dequeue();
                    named.Dequeue();
                }
                waiting.Enqueue(10 * i + j);
                named.Enqueue(j == 3 ? null : "q" + j);
            }
            string last = i == 0 ? "null" : "\"q" + (3 + i) + "\"";
            string first = i == 1 ? "null" : "\"q" + (2 + i) + "\"";
            Told("Parts", "[" + (i + 1) + ", " + (i + 2) + "], " + (i + 2) + ", [\"b\", null]"
                + ", [" + (11 * i + 2) + ", " + (11 * i + 3) + "], " + (11 * i + 3)
                + ", [" + first + ", " + last + "], 2");
            Server.Parts(new ArraySegment<int>(new[] { 0, 1, 2, 3, 4, 5 }, i + 1, 2),
                new ArraySegment<string>(new[] { "a", "b", null, "d" }, 1, 2), waiting, named);
            var holder = new Holder<string> { Held = "h" + i, Tail = 50 + i };
            Told("Hold", "\"next\", " + i + ", \"h" + i + "\", " + (50 + i));
            holder.Hold("next", i);
            Told("Join", "\"first\", " + i + ", \"last" + i + "\"");
            Holder<string>.Pair<string>.Join("first", i, "last" + i);
            Told("Choose", "\"key" + i + "\", 2, " + i % 2);
            Holder<string>.Choose("key" + i, new List<string> { "a", "b" }, i % 2);
            Told("Corner", "{\"X\": " + i + ", \"Y\": " + -i + "}");
            Server.Corner(i);
            Told("Halved", "{\"D\": " + i + ".5}");
            Server.Halved(i);
        }
        return 0;
    }
}
