// Prints what the running runtime has of types of an assembly, which stand in a field of a class
// `Asked` each: of each type T LABEL SIZE, of each of its fields F NAME OFFSET. Offsets count from the
// start of an object of Mono, with its header, and from the first field of CoreCLR; sizes are
// those of structures in an array. X FIELD is one whose type the runtime does not load.
using System;
using System.Collections.Generic;
using System.Reflection;
using System.Runtime.InteropServices;

public unsafe class Measure {
    [DllImport("__Internal")]
    static extern uint mono_field_get_offset(IntPtr field);

    static readonly bool Mono = Type.GetType("Mono.Runtime") != null;

    static string Label(Type type) {
        if (type.IsArray)
            return Label(type.GetElementType()) + "[]";
        if (!type.IsGenericType)
            return type.FullName;
        var inner = new List<string>();
        foreach (Type one in type.GetGenericArguments())
            inner.Add(Label(one));
        return type.GetGenericTypeDefinition().FullName + "{" + string.Join(";", inner.ToArray()) + "}";
    }

    static long Offset(FieldInfo field) {
        if (Mono)
            return mono_field_get_offset(field.FieldHandle.Value);
        // FieldDesc: the offset is in the low 27 bits of its second word.
        return *(uint*)((byte*)field.FieldHandle.Value + 12) & 0x7ffffff;
    }

    static string Size(Type type) {
        if (!type.IsValueType || Mono)
            return "-";
        // The size of a component is in the low half of an array's MethodTable.
        object array = Array.CreateInstance(type, 0);
        TypedReference reference = __makeref(array);
        byte* table = *(byte**)**(byte***)&reference;
        return (*(ushort*)table).ToString();
    }

    static void One(FieldInfo asked) {
        const BindingFlags all = BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic
            | BindingFlags.DeclaredOnly;
        var lines = new List<string>();
        try {
            Type type = asked.FieldType;
            if (type.IsValueType)
                Activator.CreateInstance(type);
            lines.Add("T\t" + Label(type) + "\t" + Size(type));
            foreach (FieldInfo field in type.GetFields(all))
                lines.Add("F\t" + field.Name + "\t" + Offset(field));
        } catch (TypeLoadException) {
            lines.Clear();
            lines.Add("X\t" + asked.Name);
        }
        foreach (string line in lines)
            Console.WriteLine(line);
    }

    public static int Main(string[] paths) {
        foreach (FieldInfo field in Assembly.LoadFrom(paths[0]).GetType("Asked").GetFields())
            One(field);
        return 0;
    }
}
