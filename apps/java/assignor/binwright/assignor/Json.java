package binwright.assignor;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads JSON into maps, lists, strings, numbers and booleans: a jar without dependencies. */
final class Json {
    private static final int DEEPEST = 32;

    private final String text;
    private int at;
    private int depth;

    private Json(String text) {
        this.text = text;
    }

    /** Returns the value of a whole text; throws IllegalArgumentException if it is not JSON. */
    static Object parse(String text) {
        Json json = new Json(text);
        Object value = json.value();
        json.skipSpace();
        if (json.at < text.length()) {
            throw json.fault("the end");
        }
        return value;
    }

    private Object value() {
        skipSpace();
        char first = at < text.length() ? text.charAt(at) : '\0';
        switch (first) {
            case '{':
                return object();
            case '[':
                return array();
            case '"':
                return string();
            case 't':
                return word("true", Boolean.TRUE);
            case 'f':
                return word("false", Boolean.FALSE);
            case 'n':
                return word("null", null);
            default:
                return number();
        }
    }

    private Map<String, Object> object() {
        Map<String, Object> found = new LinkedHashMap<>();
        enter();
        if (!next('}')) {
            do {
                skipSpace();
                String key = string();
                require(':');
                found.put(key, value());
            } while (next(','));
            require('}');
        }
        depth--;
        return found;
    }

    private List<Object> array() {
        List<Object> found = new ArrayList<>();
        enter();
        if (!next(']')) {
            do {
                found.add(value());
            } while (next(','));
            require(']');
        }
        depth--;
        return found;
    }

    private void enter() {
        at++;
        if (++depth > DEEPEST) {
            throw fault("fewer levels");
        }
    }

    private String string() {
        require('"');
        StringBuilder found = new StringBuilder();
        while (at < text.length() && text.charAt(at) != '"') {
            char one = text.charAt(at++);
            found.append(one == '\\' ? escaped() : one);
        }
        require('"');
        return found.toString();
    }

    private char escaped() {
        int place = at < text.length() ? "\"\\/bfnrtu".indexOf(text.charAt(at++)) : -1;
        if (place < 0) {
            throw fault("an escape");
        }
        if (place < 8) {
            return "\"\\/\b\f\n\r\t".charAt(place);
        }
        if (at + 4 > text.length()) {
            throw fault("four digits");
        }
        at += 4;
        return (char) Integer.parseInt(text.substring(at - 4, at), 16);
    }

    private Object number() {
        int begin = at;
        boolean isWhole = true;
        while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) {
            isWhole &= ".eE".indexOf(text.charAt(at)) < 0;
            at++;
        }
        String found = text.substring(begin, at);
        if (isWhole) { // else the exception would cost more than all the rest
            try {
                return Long.valueOf(found);
            } catch (NumberFormatException notWhole) {
                // more digits than a long has, or no number at all
            }
        }
        try {
            return Double.valueOf(found);
        } catch (NumberFormatException none) {
            throw fault("a value");
        }
    }

    private Object word(String word, Object value) {
        if (!text.startsWith(word, at)) {
            throw fault(word);
        }
        at += word.length();
        return value;
    }

    private boolean next(char wanted) {
        skipSpace();
        boolean isThere = at < text.length() && text.charAt(at) == wanted;
        at += isThere ? 1 : 0;
        return isThere;
    }

    private void require(char wanted) {
        if (!next(wanted)) {
            throw fault("'" + wanted + "'");
        }
    }

    private void skipSpace() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
    }

    private IllegalArgumentException fault(String expected) {
        return new IllegalArgumentException("not JSON: expected " + expected + " at character " + at);
    }
}
