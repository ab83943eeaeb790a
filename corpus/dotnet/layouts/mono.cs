// Prints where Mono places the fields of the types of assemblies: of each type T NAME, of each field
// F NAME OFFSET, the offset from the start of the object, with its header.
using System;
using System.Reflection;
using System.Runtime.InteropServices;

public class Layouts {
    [DllImport("__Internal")]
    static extern uint mono_field_get_offset(IntPtr field);

    public static int Main(string[] paths) {
        foreach (string path in paths) {
            Assembly assembly = path == "mscorlib" ? typeof(object).Assembly : Assembly.LoadFrom(path);
            Console.WriteLine("A\t" + assembly.GetName().Name);
            foreach (Type type in assembly.GetTypes()) {
                if (type.IsGenericTypeDefinition || type.IsInterface)
                    continue;
                Console.WriteLine("T\t" + type.FullName.Replace("\\", ""));
                var all = BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic
                    | BindingFlags.DeclaredOnly;
                foreach (FieldInfo field in type.GetFields(all))
                    Console.WriteLine("F\t" + field.Name + "\t"
                        + mono_field_get_offset(field.FieldHandle.Value));
            }
        }
        return 0;
    }
}
