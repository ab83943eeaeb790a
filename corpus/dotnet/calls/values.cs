// Calls methods of the class library with values of many kinds, and prints for each call what a trace
// of it has to show: the method, and by expression the values, as JSON. Through delegates and
// reflection, so that no compiler puts a method into its caller.
using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

public class Own { }

public class Values {
    static string T(string text) { return text == null ? "null" : "\"" + text + "\""; }
    static string D(decimal value) { return T(value.ToString(CultureInfo.InvariantCulture)); }
    static string When(DateTime value) {
        string text = value.ToString("s", CultureInfo.InvariantCulture);
        long rest = value.Ticks % TimeSpan.TicksPerSecond;
        string fraction = rest == 0 ? "" : "." + rest.ToString("0000000");
        return T(text + fraction + (value.Kind == DateTimeKind.Utc ? "Z" : ""));
    }
    static string Zoned(DateTimeOffset value) {
        return T(When(value.DateTime).Trim('"') + value.ToString("zzz", CultureInfo.InvariantCulture));
    }
    static string Span(TimeSpan value) { return T(value.ToString("c")); }
    static string Other(string type) { return "{\"type\": \"" + type + "\"}"; }

    // The console's own writer writes a line of more than 256 bytes in parts, and what a trace prints
    // to the same file gets between them.
    static readonly TextWriter Whole = new StreamWriter(
        Console.OpenStandardOutput(), new UTF8Encoding(false), 4096) { AutoFlush = true };

    static void Told(string method, params string[] pairs) {
        var made = new List<string>();
        for (int i = 0; i < pairs.Length; i += 2)
            made.Add(T(pairs[i]) + ": " + pairs[i + 1]);
        Whole.WriteLine("EVENT {\"method\": \"" + method + "\", \"values\": {" + string.Join(", ", made) + "}}");
    }

    static void Numbers() {
        Func<decimal, int, decimal> round = Decimal.Round;
        foreach (decimal each in new[] { 12.50m, -0.0000000000000000000000000001m, decimal.MaxValue, 0m }) {
            Told("Decimal.Round", "d", D(each), "decimals", "2");
            round(each, 2);
        }
        Func<DateTime, DateTime, int> compare = DateTime.Compare;
        Func<DateTimeOffset, DateTimeOffset, int> zoned = DateTimeOffset.Compare;
        Func<TimeSpan, TimeSpan, int> span = TimeSpan.Compare;
        for (int i = 0; i < 3; i++) {
            var when = new DateTime(2024, 2, 29, 13, 14, 15, (DateTimeKind)i).AddTicks(i);
            Told("DateTime.Compare", "t1", When(when), "t2", When(DateTime.MaxValue));
            compare(when, DateTime.MaxValue);
            var here = new DateTimeOffset(2020, 1, 1, 0, 30, 0, TimeSpan.FromMinutes(90 - 400 * i));
            Told("DateTimeOffset.Compare", "first", Zoned(here), "second", Zoned(DateTimeOffset.MinValue));
            zoned(here, DateTimeOffset.MinValue);
            var took = new TimeSpan(-i, -4, -5, -6, -7);
            Told("TimeSpan.Compare", "t1", Span(took), "t2", Span(TimeSpan.MaxValue));
            span(took, TimeSpan.MaxValue);
        }
    }

    static void Boxes() {
        Func<object, bool> equals = Guid.Empty.Equals;
        var boxes = new object[] { 7, "8", 9.50m, DayOfWeek.Friday, new DateTime(2001, 2, 3), null, new Own() };
        var types = new[] { "int", "string", "System.Decimal", "System.DayOfWeek", "System.DateTime", null, "Own" };
        for (int i = 0; i < boxes.Length; i++) {
            object box = boxes[i];
            string other = box == null ? "null" : Other(types[i]);
            Told("Guid.Equals",
                "(int)o", box is int ? "7" : box is DayOfWeek ? "5" : other,
                "(string)o", box is string ? "\"8\"" : other,
                "(decimal)o", box is decimal ? "\"9.50\"" : other,
                "(System.DateTime)o", box is DateTime ? When((DateTime)box) : other,
                "o as System.DayOfWeek", box is DayOfWeek ? "{\"name\": \"Friday\", \"value\": 5}" : other,
                "((System.Exception)o).HResult", other);
            equals(box);
        }
    }

    static void Arrays() {
        Action<Array> reverse = Array.Reverse;
        var arrays = new Array[] {
            new[] { 1, 2, 3 }, new int[,] { { 1, 2, 3 }, { 4, 5, 6 } }, new[] { "a", null }, new uint[2], new Own[1],
        };
        foreach (Array array in arrays) {
            string other = Other("an array");
            Told("Array.Reverse",
                "(int[])array", array.GetType() == typeof(int[]) ? "[1, 2, 3]" : other,
                "(int[,])array", array is int[,] ? "[[1, 2, 3], [4, 5, 6]]" : other,
                "((int[,])array)[1,2]", array is int[,] ? "6" : other,
                "((int[,])array).Length1", array is int[,] ? "3" : other,
                "(string[])array", array is string[] ? "[\"a\", null]" : other,
                "len((object[])array)", array is string[] ? "2" : array is Own[] ? "1" : other);
            try {
                reverse(array);
            } catch (RankException) {
            }
        }
    }

    static void Collections() {
        var map = new Dictionary<string, string> { { "a", "1" }, { "b", "2" }, { "c", "3" }, { "d", null } };
        Func<string, bool> remove = map.Remove;
        foreach (string key in new[] { "b", "no", "d", "a" }) {
            string entries = string.Join(", ", map.Select(one => "{\"key\": " + T(one.Key) + ", \"value\": " + T(one.Value) + "}"));
            string found;
            map.TryGetValue("nb", out found);
            Told("Dictionary.Remove", "this.Count", map.Count.ToString(), "(string)key", T(key),
                "((Dictionary<string, string>)this)[:]", "[" + entries + "]",
                "((Dictionary<string, string>)this)[\\\"nb\\\"]", T(found));
            remove(key);
            map["n" + key] = key;  // in the entry that is free again
        }
        var set = new HashSet<string> { "a", "b", "c", "d" };
        Func<string, bool> remove_item = set.Remove;
        foreach (string key in new[] { "d", "b", "no", "a" }) {
            Told("HashSet.Remove", "((HashSet<string>)this)[:]", "[" + string.Join(", ", set.Select(T)) + "]");
            remove_item(key);
        }
    }

    static void Newer() {
        Type day = Type.GetType("System.DateOnly"), time = Type.GetType("System.TimeOnly");
        var numbers = new[] { 0, 738944, 3652058 };
        for (int i = 0; i < 3; i++) {
            object date = day.GetMethod("FromDayNumber").Invoke(null, new object[] { numbers[i] });
            Told("DateOnly.ToLongDateString", "this", T(new DateTime(numbers[i] * TimeSpan.TicksPerDay).ToString("yyyy-MM-dd")));
            day.GetMethod("ToLongDateString").Invoke(date, null);
            long ticks = 777777777L * (i + 1);
            object clock = Activator.CreateInstance(time, ticks);
            Told("TimeOnly.ToLongTimeString", "this", T(new DateTime(ticks).ToString("HH:mm:ss.fffffff")));
            time.GetMethod("ToLongTimeString").Invoke(clock, null);
        }
    }

    // By reflection: the library that this is compiled against has neither. Before .NET 9 there is no OrderedDictionary.
    static void NewerCollections() {
        Assembly library = Assembly.Load("System.Collections");
        foreach (string name in new[] { "PriorityQueue", "OrderedDictionary" }) {
            Type type = library.GetType("System.Collections.Generic." + name + "`2");
            if (type == null)
                continue;
            type = type.MakeGenericType(typeof(string), typeof(int));
            object held = Activator.CreateInstance(type);
            string text = "((System.Collections.Generic." + name + "<string, int>)value)";
            var add = type.GetMethod(name == "PriorityQueue" ? "Enqueue" : "Add");
            for (int i = 0; i < 5; i++) {
                if (name == "PriorityQueue") {
                    var items = (IEnumerable<ValueTuple<string, int>>)type.GetProperty("UnorderedItems").GetValue(held);
                    Told(name, text + "[:]", "[" + string.Join(", ", items.Select(one => "{\"Item1\": " + T(one.Item1) + ", \"Item2\": " + one.Item2 + "}")) + "]");
                } else {
                    var pairs = ((IEnumerable<KeyValuePair<string, int>>)held).ToList();
                    Told(name, text + "[:]", "[" + string.Join(", ", pairs.Select(one => "{\"key\": " + T(one.Key) + ", \"value\": " + one.Value + "}")) + "]",
                        text + "[\\\"k2\\\"]", pairs.Where(one => one.Key == "k2").Select(one => one.Value.ToString()).DefaultIfEmpty("null").First());
                }
                (name == "PriorityQueue" ? (Func<object, bool>)Decimal.Zero.Equals : DateTime.MinValue.Equals)(held);
                add.Invoke(held, new object[] { "k" + i, 9 - i * i });
                if (i == 3 && name == "OrderedDictionary")
                    type.GetMethod("Remove", new[] { typeof(string) }).Invoke(held, new object[] { "k1" });
            }
        }
    }

    static void Parts() {
        Func<ReadOnlyMemory<byte>, CancellationToken, ValueTask> write = new MemoryStream().WriteAsync;
        var bytes = new byte[100];
        for (int i = 0; i < bytes.Length; i++)
            bytes[i] = (byte)(i * 3);
        var parts = new[] {
            new ReadOnlyMemory<byte>(bytes, 3, 5), new ReadOnlyMemory<byte>(bytes, 60, 4), default(ReadOnlyMemory<byte>),
            new ReadOnlyMemory<byte>(bytes, 0, 1),
        };
        foreach (ReadOnlyMemory<byte> part in parts) {
            byte[] copy = part.ToArray();
            Told("MemoryStream.WriteAsync", "buffer", "[" + string.Join(", ", copy) + "]",
                "buffer[1]", copy.Length > 1 ? copy[1].ToString() : "null",
                "buffer.Length", part.Length.ToString());
            write(part, default(CancellationToken));
        }
    }

    // A part of a text, or of an array of its units.
    static void PartsOfTexts() {
        Func<ReadOnlyMemory<char>, CancellationToken, Task> write = new StreamWriter(new MemoryStream()).WriteAsync;
        char[] units = "0123456789abcdef".ToCharArray();
        string text = "h\u00e9llo \ud83d\ude00 w\u00f6rld";
        var parts = new[] {
            text.AsMemory(), text.AsMemory(9, 5), text.AsMemory(3, 0), default(ReadOnlyMemory<char>), new ReadOnlyMemory<char>(units),
            new ReadOnlyMemory<char>(units, 3, 4), "".AsMemory(), (new string('x', 60) + "yz").AsMemory(58, 4),
        };
        foreach (ReadOnlyMemory<char> part in parts) {
            string copy = part.ToString();
            Told("StreamWriter.WriteAsync", "buffer", T(copy), "buffer.Length", part.Length.ToString(),
                "buffer[1]", copy.Length > 1 ? T(copy.Substring(1, 1)) : "null");
            write(part, default(CancellationToken));
        }
    }

    static int Main(string[] args) {
        Numbers();
        Boxes();
        Arrays();
        Collections();
        Parts();
        PartsOfTexts();
        if (args.Length > 0) {
            Newer();
            NewerCollections();
        }
        return 0;
    }
}
