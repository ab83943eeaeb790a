// Calls methods of the class library, and prints for each what a trace of it has to show: the
// method's short name and its values, as JSON. Those that a compiler would put into their caller are
// called through a delegate or by reflection.
using System;
using System.Collections.Generic;
using System.Reflection;
using System.Text;

public class Calls {
    static readonly string[] Texts = {
        "hello", "h\u00e9llo \u20ac \ud83d\ude00", "", " ", "a\"b\\c\n", new string('x', 300), null,
    };

    static string Quoted(string text) {
        if (text == null)
            return "null";
        var made = new StringBuilder("\"");
        foreach (char unit in text) {
            if (unit < ' ' || unit > '~' || unit == '"' || unit == '\\')
                made.Append("\\u" + ((int)unit).ToString("x4"));
            else
                made.Append(unit);
        }
        return made + "\"";
    }

    static void Told(string method, string values) {
        Console.WriteLine("EVENT {\"method\": \"" + method + "\", \"values\": [" + values + "]}");
    }

    static int Main(string[] args) {
        bool newer = args.Length > 0 && args[0] == "newer";
        foreach (string text in Texts) {
            if (newer) {
                Told("IsNullOrWhiteSpace", Quoted(text));
                String.IsNullOrWhiteSpace(text);
            }
        }
        ConstructorInfo constructor = typeof(Uri).GetConstructor(new[] { typeof(string) });
        for (int i = 0; i < 4; i++) {
            string address = "http://example.com/" + new string('p', i);
            Told("Uri", Quoted(address));
            constructor.Invoke(new object[] { address });
        }
        if (!newer)
            return 0;
        for (int i = 0; i < 5; i++) {
            var bytes = new byte[i * 3];
            for (int b = 0; b < bytes.Length; b++)
                bytes[b] = (byte)(200 + b * i);
            Told("ToBase64String", bytes.Length + ", [" + String.Join(", ", bytes) + "]");
            Convert.ToBase64String(bytes);
        }
        var numbers = new List<int> { 10, -20, 30, 40 };
        Action<int> remove = numbers.RemoveAt;
        for (int i = 3; i >= 1; i--) {
            Told("RemoveAt", numbers.Count + ", " + i + ", [" + String.Join(", ", numbers) + "]");
            remove(i);
        }
        var left = new Guid("00112233-4455-6677-8899-aabbccddeeff");
        for (int i = 0; i < 3; i++) {
            var right = new Guid(i - 1, (short)-i, (short)(300 * i), 9, 8, 7, 6, 5, 4, 3, (byte)(250 + i));
            Told("CompareTo", (int)0x00112233 + ", " + (i - 1) + ", " + -i + ", " + (300 * i)
                + ", 9, " + (250 + i));
            left.CompareTo(right);
        }
        string[] parts = { "one", null, "thr\u00e9e" };
        Func<string, string[], string> join = String.Join;
        for (int i = 0; i < 2; i++) {
            Told("Join", parts.Length + ", " + Quoted(parts[0]) + ", " + Quoted(parts[2])
                + ", [" + Quoted(parts[0]) + ", null, " + Quoted(parts[2]) + "], [null, "
                + Quoted(parts[2]) + "]");
            join("|", parts);
        }
        for (int i = 0; i < 3; i++) {
            string number = (1200 * (i + 1)).ToString();
            Told("TryParse", Quoted(number) + ", 4, [" + (int)number[0] + ", " + (int)number[1] + "]");
            int.Parse(number);
        }
        object[] boxes = { 7, -8, 9 };
        var integers = new[] { 1, 7, -8 };
        for (int i = 0; i < 3; i++) {
            Told("IndexOf", boxes[i] + ", " + i + ", " + (3 - i));
            Array.IndexOf((Array)integers, boxes[i], i, 3 - i);
        }
        return 0;
    }
}
