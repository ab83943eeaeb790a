// Values of many kinds in methods of its own that print what a trace of each call has to show: the
// method and its values, as JSON. Compiled ahead of time by Mono.
using System;
using System.Collections;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Text;

[Flags] public enum Rights : byte { None = 0, Read = 1, Write = 2, Both = 3, Run = 4, Own = 0x80 }
public enum Level : long { Low = -5000000000, High = 5000000000 }

public interface IShape { double Area(int scale); }

public class Shape { public string Label; public int Sides; }
public class Square : Shape, IShape {
    public double Side;
    [MethodImpl(MethodImplOptions.NoInlining)]
    double IShape.Area(int scale) { return Side * Side * scale; }
}
public class Circle : Shape { public double Radius; }

public class Outer {
    public class Inner {
        public struct Deep { public sbyte A; public char Sign; public DateTime When; }
        public Deep Held;
        public static int Shared = 77;
    }
}

public class Everything {
    public decimal Price;
    public DateTime Local, Utc, Plain;
    public DateTimeOffset Zoned;
    public TimeSpan Took;
    public Guid Id;
    public char Letter;
    public Rights Rights;
    public Level Level;
    public IntPtr Handle;
    public UIntPtr Size;
    public bool Yes;
    public float Single;
    public decimal? Maybe;
    public DateTime? Never;
    public ValueTuple<int, string> Pair;
    public (string name, byte age, decimal sum) Named;
    public KeyValuePair<short, string> Entry;
    public int[,] Grid;
    public string[,,] Cube;
    public int[][] Jagged;
    public Dictionary<string, int> Map;
    public HashSet<int> Set;
    public Queue<int> Queue;
    public Stack<string> Stack;
    public Stack<int> Numbers;
    public ArraySegment<byte> Segment;
    public object Boxed, Text, Array, Thing;
    public Outer.Inner Inner;
    public string Auto { get; private set; }
    public string Second { get { return Pair.Item2; } }
    public int Rows => Jagged.Length;
    public int Places { get { return Label.Length; } }
    string Label => Auto;
    public virtual IShape Form { get { return (IShape)Thing; } }
    public decimal[] Prices;
    public List<DateTime> Days;
    public Guid[] Ids;
    public Everything() { Auto = "auto"; }
}

public struct Money { public decimal Amount; public Rights Rights; }

public class Values {
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Fields(Everything all) { return all.Sum(); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Stacks(Everything all) { return all.Sum(); }
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Collections(Everything all) { return all.Sum(); }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Arguments(decimal price, DateTime when, TimeSpan took, char letter, Rights rights) {
        return letter;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int More(Guid id, DateTimeOffset zoned, int? maybe, (short low, short high) pair) {
        return (int)rightsOf(id);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static Rights rightsOf(Guid id) { return Rights.Read; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Seen(Shape shape, object any, object other) { return shape == null ? 0 : shape.Sides; }
}

static class Extensions {
    public static int Sum(this Everything all) { return all.Letter; }
}

public class Program {
    static string T(string text) { return text == null ? "null" : "\"" + text + "\""; }
    static string D(decimal value) { return T(value.ToString(CultureInfo.InvariantCulture)); }
    static string When(DateTime value) {
        string text = value.ToString("s", CultureInfo.InvariantCulture);
        long rest = value.Ticks % TimeSpan.TicksPerSecond;
        return T(text + (rest == 0 ? "" : "." + rest.ToString("0000000")) + (value.Kind == DateTimeKind.Utc ? "Z" : ""));
    }
    static string Zoned(DateTimeOffset value) {
        return T(When(value.DateTime).Trim('"') + value.ToString("zzz", CultureInfo.InvariantCulture));
    }
    static string E(object value) {
        return "{\"name\": \"" + value + "\", \"value\": " + Convert.ToInt64(value) + "}";
    }
    static string C(char unit) { return "\"\\u" + ((int)unit).ToString("x4") + "\""; }
    static string B(bool value) { return value ? "true" : "false"; }
    static string L(IEnumerable<string> values) { return "[" + string.Join(", ", values) + "]"; }
    static string Span(TimeSpan value) { return T(value.ToString("c")); }
    // The console's own writer writes a line of more than 256 bytes in parts, and what a trace prints
    // to the same file gets between them.
    static readonly TextWriter Whole = new StreamWriter(
        Console.OpenStandardOutput(), new UTF8Encoding(false), 4096) { AutoFlush = true };

    // An expression of the trace, its value, and so on.
    static void Told(string method, params string[] pairs) {
        var made = new List<string>();
        for (int i = 0; i < pairs.Length; i += 2)
            made.Add(T(pairs[i]) + ": " + pairs[i + 1]);
        Whole.WriteLine("EVENT {\"method\": \"" + method + "\", \"values\": {" + string.Join(", ", made) + "}}");
    }

    static string Other(string type) { return "{\"type\": \"" + type + "\"}"; }

    static void Seen(int i) {
        var things = new object[] { "text", 42, new Money(), new[] { 1, 2 }, new int[1, 1], new[] { "a" }, Rights.Own, null };
        var types = new[] { "string", "int", "Money", null, null, null, "Rights", null };
        var shapes = new Shape[] { new Square { Label = "q", Side = 2.5 }, new Circle { Label = "c", Radius = i }, null };
        for (int at = 0; at < things.Length; at++) {
            object any = things[at];
            Shape shape = shapes[(at + i) % 3];
            string other = any == null ? "null" : Other(types[at] ?? "an array");
            var numbers = any as int[];
            Told("Seen",
                "(shape as Square).Side", shape is Square ? "2.5" : shape == null ? "null" : Other("Circle"),
                "((Circle)shape).Radius", shape is Circle ? i + ".0" : shape == null ? "null" : Other("Square"),
                "((Shape)other).Label", shape == null ? "null" : T(shape.Label),
                "(string)any", any is string ? T((string)any) : any is string[] ? Other("an array") : other,
                "(int)any", any is int ? "42" : any is int[] ? Other("an array") : other,
                "(byte)any", any is Rights ? "128" : other,
                "(Rights)any", any is Rights ? E(any) : other,
                "(int[])any", numbers != null ? "[1, 2]" : any is string[] ? Other("an array") : other,
                "(int[,])any", any is int[,] ? "[[0]]" : other,
                "len((object[])any)", any is object[] ? "1" : other);
            Values.Seen(shape, any, shape);
        }
    }

    public static int Main() {
        for (int i = 0; i < 3; i++) {
            var all = new Everything {
                Price = new[] { 12.50m, -0.0000000000000000000000000001m, decimal.MaxValue }[i],
                Local = new DateTime(2024, 2, 29, 13, 14, 15, DateTimeKind.Local).AddTicks(i),
                Utc = new DateTime(1969, 12, 31, 23, 59, 59, DateTimeKind.Utc),
                Plain = i == 2 ? DateTime.MaxValue : new DateTime(i),
                Zoned = new DateTimeOffset(2020, 1, 1, 0, 30, 0, TimeSpan.FromMinutes(90 - 400 * i)),
                Took = new[] { TimeSpan.Zero, new TimeSpan(-3, -4, -5, -6, -7), TimeSpan.FromMilliseconds(1.5) }[i],
                Id = new Guid(0x01020304 * (i + 1), 0x0506, -2, 9, 8, 7, 6, 5, 4, 3, (byte)i),
                Letter = "A\u00e9\u20ac"[i],
                Rights = (Rights)new[] { 0, 5, 0x83 }[i], Level = i == 0 ? Level.Low : Level.High,
                Handle = (IntPtr)(-i), Size = (UIntPtr)(uint)i, Yes = i == 1, Single = 0.1f * i,
                Maybe = i == 0 ? (decimal?)null : 3.10m, Pair = (i, "p" + i),
                Named = ("n" + i, (byte)(200 + i), 0.5m),
                Entry = new KeyValuePair<short, string>((short)-i, i == 1 ? null : "e"),
                Grid = new int[,] { { 1, 2, 3 }, { 4, 5, 6 + i } },
                Cube = new string[2, 2, 2], Jagged = new[] { new[] { 1 }, null, new[] { i, i + 1 } },
                Map = new Dictionary<string, int> { { "a", 1 }, { "b", 2 }, { "c", 3 } },
                Set = new HashSet<int> { 1, 2, 3, 4 }, Queue = new Queue<int>(new[] { 5, 6 }),
                Stack = new Stack<string>(new[] { "x", "y", "z" + i }), Numbers = new Stack<int>(Enumerable.Range(0, 3 + 9 * i)),
                Segment = new ArraySegment<byte>(new byte[] { 1, 2, 3, 4 }, i, 2),
                Boxed = 1000 * i - 1, Text = "text" + i, Array = new[] { 7, 8, i },
                Thing = new Square { Label = "sq", Side = 1.5, Sides = 4 },
                Inner = new Outer.Inner { Held = new Outer.Inner.Deep { A = (sbyte)-i, Sign = '"', When = new DateTime(2000, 1, 1) } },
                Prices = new[] { 1.0m, 2.00m }, Days = new List<DateTime> { new DateTime(2001, 1, 1 + i) },
                Ids = new[] { Guid.Empty },
            };
            all.Cube[1, 0, 1] = "c" + i;
            if (i > 0) {
                all.Map.Remove("b");
                all.Set.Remove(2);
                all.Set.Remove(3);
                all.Queue.Dequeue();
            }
            Told("Fields",
                "all.Price", D(all.Price), "all.Local", When(all.Local), "all.Utc", When(all.Utc),
                "all.Plain", When(all.Plain), "all.Zoned", Zoned(all.Zoned), "all.Took", Span(all.Took),
                "all.Id", T(all.Id.ToString()), "all.Letter", C(all.Letter), "all.Rights", E(all.Rights),
                "all.Level", E(all.Level), "all.Handle", all.Handle.ToString(), "all.Size", all.Size.ToString(),
                "all.Yes", B(all.Yes), "all.Maybe.HasValue", B(all.Maybe.HasValue),
                "all.Maybe", i == 0 ? "null" : D(all.Maybe.Value),
                "all.Maybe.Value", i == 0 ? "null" : D(all.Maybe.Value), "all.Never", "null",
                "all.Pair.Item1", all.Pair.Item1.ToString(), "all.Pair.Item2", T(all.Pair.Item2),
                "all.Named.name", T(all.Named.name), "all.Named.age", all.Named.age.ToString(),
                "all.Named.sum", D(all.Named.sum), "all.Entry.Key", all.Entry.Key.ToString(), "all.Entry.Value", T(all.Entry.Value),
                "all.Inner.Held.A", all.Inner.Held.A.ToString(), "all.Inner.Held.Sign", C(all.Inner.Held.Sign),
                "all.Inner.Held.When", When(all.Inner.Held.When), "all.Auto", T(all.Auto),
                "all.Auto.Length", all.Auto.Length.ToString(), "all.Auto[1]", C(all.Auto[1]),
                "all.Second", T(all.Second), "all.Rows", all.Rows.ToString(),
                "all.Places", all.Places.ToString(),
                "all.Prices", L(all.Prices.Select(D)), "all.Days", L(all.Days.Select(When)),
                "all.Ids", L(all.Ids.Select(one => T(one.ToString()))));
            Values.Fields(all);
            Told("Collections",
                "all.Grid", "[[1, 2, 3], [4, 5, " + (6 + i) + "]]", "all.Grid[1,2]", all.Grid[1, 2].ToString(),
                "all.Grid[0,1]", "2", "all.Grid.Length", "6", "len(all.Grid)", "6",
                "all.Cube[1,0,1]", T(all.Cube[1, 0, 1]), "all.Cube[1,1,1]", "null",
                "all.Jagged[2][1]", all.Jagged[2][1].ToString(), "all.Jagged.Length", "3",
                "all.Map.Count", all.Map.Count.ToString(), "all.Set.Count", all.Set.Count.ToString(),
                "all.Queue.Count", all.Queue.Count.ToString(), "all.Stack.Count", all.Stack.Count.ToString(),
                "all.Segment.Count", all.Segment.Count.ToString(),
                "all.Segment.Offset", all.Segment.Offset.ToString(),
                "(int)all.Boxed", all.Boxed.ToString(), "(string)all.Text", T((string)all.Text),
                "((int[])all.Array)[2]", ((int[])all.Array)[2].ToString(), "(all.Array as int[]).Length", "3",
                "((Square)all.Thing).Label", T(((Square)all.Thing).Label));
            Values.Collections(all);
            Told("Stacks", "all.Stack", L(all.Stack.Select(T)), "all.Numbers[0]", all.Numbers.Peek().ToString(),
                "all.Numbers", L(all.Numbers.Select(one => one.ToString())));
            Values.Stacks(all);
            Told("Arguments", "price", D(all.Price), "when", When(all.Local), "took", Span(all.Took),
                "letter", C("abc"[i]), "rights", E(all.Rights));
            Values.Arguments(all.Price, all.Local, all.Took, "abc"[i], all.Rights);
            int? maybe = i == 1 ? 9 : (int?)null;
            Told("More", "id", T(all.Id.ToString()), "zoned", Zoned(all.Zoned),
                "maybe.HasValue", B(maybe.HasValue), "maybe", maybe.HasValue ? "9" : "null",
                "pair.Item1", i.ToString(), "pair.high", (-i).ToString());
            Seen(i);
            Values.More(all.Id, all.Zoned, maybe, ((short)i, (short)-i));
        }
        return 0;
    }
}
