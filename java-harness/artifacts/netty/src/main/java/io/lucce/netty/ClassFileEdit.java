package io.lucce.netty;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Changes of a class file: a name of the constant pool, and whether a method may be overridden. */
final class ClassFileEdit {
    private static final int FINAL = 0x10;
    /** Where the constant pool begins. */
    private static final int POOL = 10;

    private byte[] bytes;
    /** Where each entry of the constant pool begins. */
    private int[] entries;
    /** Where the constant pool ends. */
    private int end;

    ClassFileEdit(byte[] bytes) {
        this.bytes = bytes;
        findEntries();
    }

    byte[] bytes() {
        return bytes;
    }

    /** Makes all methods of this name such that subclasses may override them. */
    ClassFileEdit openMethod(String name) {
        ByteBuffer in = ByteBuffer.wrap(bytes);
        in.position(end + 6);
        in.position(in.position() + 2 + 2 * u2(in, in.position()));
        skipMembers(in, null);
        int opened = skipMembers(in, name);
        if (opened == 0) {
            throw new IllegalArgumentException("no method " + name);
        }
        return this;
    }

    /** Skips fields or methods, and opens those of this name; returns their number. */
    private int skipMembers(ByteBuffer in, String opened) {
        int number = 0;
        for (int members = u2(in); members > 0; members--) {
            int flags = in.position();
            in.position(flags + 2);
            if (text(u2(in)).equals(opened)) {
                in.putShort(flags, (short) (in.getShort(flags) & ~FINAL));
                number++;
            }
            in.position(in.position() + 2);
            for (int attributes = u2(in); attributes > 0; attributes--) {
                in.position(in.position() + 2);
                int length = in.getInt();
                in.position(in.position() + length);
            }
        }
        return number;
    }

    /** Gives methods of this name another name. Other entries with the same text get it, too. */
    ClassFileEdit renameMethod(String name, String to) {
        for (int entry = 1; entry < entries.length; entry++) {
            if (entries[entry] > 0 && bytes[entries[entry]] == 1 && text(entry).equals(name)) {
                replaceText(entries[entry], name, to);
                return this;
            }
        }
        throw new IllegalArgumentException("no method " + name);
    }

    private void replaceText(int at, String name, String to) {
        byte[] text = to.getBytes(StandardCharsets.UTF_8);
        ByteArrayOutputStream out = new ByteArrayOutputStream(bytes.length);
        out.write(bytes, 0, at + 1);
        out.write(text.length >> 8);
        out.write(text.length);
        out.writeBytes(text);
        int behind = at + 3 + name.length();
        out.writeBytes(Arrays.copyOfRange(bytes, behind, bytes.length));
        bytes = out.toByteArray();
        findEntries();
    }

    private String text(int entry) {
        int at = entries[entry];
        ByteBuffer in = ByteBuffer.wrap(bytes);
        return new String(bytes, at + 3, u2(in, at + 1), StandardCharsets.UTF_8);
    }

    /** Of an entry that is no text, in bytes. */
    private static int size(int tag) {
        switch (tag) {
            case 3: case 4: case 9: case 10: case 11: case 12: case 17: case 18:
                return 5;
            case 5: case 6:
                return 9;
            case 7: case 8: case 16: case 19: case 20:
                return 3;
            case 15:
                return 4;
            default:
                throw new IllegalArgumentException("constant pool tag " + tag);
        }
    }

    private void findEntries() {
        ByteBuffer in = ByteBuffer.wrap(bytes);
        entries = new int[u2(in, POOL - 2)];
        int at = POOL;
        for (int entry = 1; entry < entries.length; entry++) {
            entries[entry] = at;
            int tag = bytes[at];
            at += tag == 1 ? 3 + u2(in, at + 1) : size(tag);
            // Those of 64 bits take two numbers.
            entry += tag == 5 || tag == 6 ? 1 : 0;
        }
        end = at;
    }

    private static int u2(ByteBuffer in) {
        return in.getShort() & 0xffff;
    }

    private static int u2(ByteBuffer in, int at) {
        return in.getShort(at) & 0xffff;
    }
}
