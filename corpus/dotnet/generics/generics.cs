// Generic types and methods with numbers, structures and classes as type arguments. For each line of
// its input every method is called once; in front of each call the program logs what a trace of it
// has to show: the method and its values, as JSON.
using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;

namespace Store {
    public struct Point { public int X; public short Y; }

    public class Order { public int Id; public string Customer; }

    public class Box<T> {
        public T held;
        public int count;

        [MethodImpl(MethodImplOptions.NoInlining)]
        public int Put(T value, int n) { held = value; count += n; return count; }

        // Code that all classes share has a hidden parameter here: there is no object that knows T.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static bool Same(T one, T other, long n) { return EqualityComparer<T>.Default.Equals(one, other) && n > 0; }
    }

    public class Pair<K, V> {
        public K Key;

        public class Kept<N> {
            public N last;

            [MethodImpl(MethodImplOptions.NoInlining)]
            public V Swap(K key, V value, N next) { last = next; return value; }
        }
    }

    public struct Slot<T> {
        public T first;
        public long last;

        [MethodImpl(MethodImplOptions.NoInlining)]
        public long[] Add(T value, long more) { first = value; last += more; return new[] { last }; }
    }

    public static class Program {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static T Pick<T>(T one, int n) { return n > 0 ? one : default(T); }

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static int Count<T>(int n) { return typeof(T) == typeof(int) ? n : -n; }

        static string J(object value) {
            return value == null ? "null" : value is string ? "\"" + value + "\"" : value.ToString();
        }

        static void Log(string method, params object[] pairs) {
            var made = new List<string>();
            for (int at = 0; at < pairs.Length; at += 2) made.Add(J(pairs[at]) + ": " + J(pairs[at + 1]));
            Console.WriteLine("EVENT {\"method\": \"" + method + "\", \"values\": {" + string.Join(", ", made) + "}}");
        }

        public static int Main() {
            var numbers = new Box<int>();
            var texts = new Box<string>();
            var orders = new Box<Order>();
            var points = new Box<Point>();
            var times = new Box<DateTime>();
            var spans = new Box<KeyValuePair<string, int>>();
            var kept = new Pair<string, int>.Kept<short>();
            var slot = new Slot<byte>();
            var named = new Slot<string>();
            Console.WriteLine("ready");
            for (int n = 1; Console.ReadLine() != null; n++) {
                Log("Box<int>.Put", "value", 7 * n, "n", n, "this.held", numbers.held, "this.count", numbers.count);
                numbers.Put(7 * n, n);
                Log("Box<__Canon>.Put", "(string)value", "text " + n, "n", -n, "(string)this.held", texts.held, "this.count", texts.count);
                texts.Put("text " + n, -n);
                var order = new Order { Id = n, Customer = "customer " + n };
                Log("Box<__Canon>.Put", "((Order)value).Customer", order.Customer, "((Order)value).Id", n, "n", 1000 + n);
                orders.Put(order, 1000 + n);
                Log("Box<Store.Point>.Put", "value.X", n, "value.Y", -n, "n", 8, "this.held.X", points.held.X, "this.count", points.count);
                points.Put(new Point { X = n, Y = (short)-n }, 8);
                Log("Box<System.DateTime>.Put", "value._dateData", n, "n", n, "this.count", times.count);
                times.Put(new DateTime(n), n);
                Log("Box<System.Collections.Generic.KeyValuePair<__Canon, int>>.Put", "(string)value.Key", "one", "value.Value", n, "n", -7);
                spans.Put(new KeyValuePair<string, int>("one", n), -7);
                Log("Box<__Canon>.Same", "(string)one", "one " + n, "(string)other", "other", "n", n + 5000000000L);
                Box<string>.Same("one " + n, "other", n + 5000000000L);
                Log("Pair<__Canon, int>.Kept<short>.Swap", "(string)key", "key " + n, "value", n, "next", 5 - n, "this.last", (int)kept.last);
                kept.Swap("key " + n, n, (short)(5 - n));
                Log("Slot<byte>.Add", "value", n, "more", 1L << 40, "this.last", slot.last);
                slot.Add((byte)n, 1L << 40);
                named.Add("slot " + n, n);
                Pick("pick " + n, n);
                Pick(n, n);
                Count<string>(n);
                Console.WriteLine("done");
            }
            return numbers.count > 0 ? 0 : 1;
        }
    }
}
