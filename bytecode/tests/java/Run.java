/** Calls {@code static int run(int)} of the classes that are named, with a few arguments. */
class Run {
    public static void main(String[] names) throws Exception {
        for (String name : names) {
            var method = Class.forName(name).getMethod("run", int.class);
            for (int argument = 0; argument < 4; argument++) {
                System.out.println(name + "(" + argument + ") = " + method.invoke(null, argument));
            }
        }
    }
}
