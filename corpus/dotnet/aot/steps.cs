// Methods that a compiler takes apart: asynchronous ones, iterators, and functions within others that
// capture variables. Each tells in front of a step, and in front of a call, what a trace of it
// has to show: the method and its values, as JSON. Compiled ahead of time by Mono; with an argument
// it does all of it once for each line of its input, as other runtimes compile it meanwhile.
using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Threading.Tasks;

public class Steps {
    int handled = 5;
    string label = "svc";

    static string T(string text) { return text == null ? "null" : "\"" + text + "\""; }

    static void Told(string method, params object[] pairs) {
        var made = new List<string>();
        for (int at = 0; at < pairs.Length; at += 2)
            made.Add(T((string)pairs[at]) + ": " + (pairs[at + 1] is string ? T((string)pairs[at + 1]) : pairs[at + 1]));
        Console.WriteLine("EVENT {\"method\": \"" + method + "\", \"values\": {" + string.Join(", ", made) + "}}");
    }

    // One step each that ends nowhere else, so that the next one begins with what was told.
    async Task<int> Wait(string text, int retries) {
        int sum = 100;
        string note = "note " + text;
        for (int i = 0; i < retries; i++) {
            Told("Wait", "sum", sum, "note", note, "i__1", i, "text", text, "retries", retries, "handled", handled, "this.label", label);
            await Task.Yield();
            sum += i;
            note += i;
            handled++;
        }
        for (int i = 7; i < 8; i++) {
            Told("Wait", "sum", sum, "note", note, "i__2", i, "text", text, "this.this.handled", handled);
            await Task.Yield();
        }
        return sum;
    }

    IEnumerable<int> Count(int limit, string text) {
        int at = 40;
        foreach (int each in new List<int> { 1, 2, 3 }) {
            at += each;
            Told("Count", "at", at, "each", each, "limit", limit, "text", text, "handled", handled, "label", label);
            yield return at + limit;
        }
    }

    // Roslyn would call a local function `<Captured>g__Local|7_0`. mcs has none: a test puts its name here.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int XCapturedXg__LocalX7_0(int start, string tag) { return start + tag.Length; }

    int Captured(int factor, string text) {
        int seen = 0;
        foreach (int each in new[] { 3, 4 }) {
            int inner = each * 10;
            string tag = text + each;
            Action<int> add = x => {
                seen += x + inner + factor + handled + tag.Length;
            };
            Told("Captured", "x", 1000 + each, "inner", inner, "tag", tag, "seen", seen, "factor", factor, "handled", handled, "label", label);
            add(1000 + each);
            Told("Local", "start", each, "tag", tag);
            seen += XCapturedXg__LocalX7_0(each, tag);
        }
        return seen;
    }

    public static int Main(string[] arguments) {
        if (arguments.Length == 0) return All();
        Console.WriteLine("ready");
        int all = 0;
        for (; Console.ReadLine() != null; Console.WriteLine("done")) all += All();
        return all > 0 ? 0 : 1;
    }

    static int All() {
        var steps = new Steps();
        int total = steps.Wait("one", 2).Result + steps.Wait("two", 1).Result;
        foreach (int one in steps.Count(8, "counted"))
            total += one;
        total += steps.Captured(6, "held");
        return total > 0 ? 0 : 1;
    }
}
