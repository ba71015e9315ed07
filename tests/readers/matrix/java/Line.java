// One JSON line of a reader in Java, as dataset_lines.py has them in Python.

import java.lang.reflect.Array;
import java.util.ArrayList;
import java.util.List;

class Line {
  private final StringBuilder text = new StringBuilder();
  private final StringBuilder attributes = new StringBuilder();

  private Line(String path, String name) {
    text.append("{\"file\": ").append(quoted(path)).append(", \"name\": ").append(quoted(name));
  }

  static boolean wanted(String name) {
    return name.matches("title|units|a\\d\\d");
  }

  /** The version in the name of the archive that a class comes from. */
  static String version(Class<?> loaded) {
    String archive = loaded.getProtectionDomain().getCodeSource().getLocation().getPath();
    return archive.replaceAll("^.*-([0-9][^/]*)\\.jar$", "$1");
  }

  static String quoted(String value) {
    StringBuilder out = new StringBuilder("\"");
    for (char c : value.toCharArray()) {
      if (c < ' ' || c > '~' || c == '"' || c == '\\') {
        out.append(String.format("\\u%04x", (int) c));
      } else {
        out.append(c);
      }
    }
    return out.append('"').toString();
  }

  /** Elements of arrays of arrays in the order of C. */
  private static void flatten(Object value, List<Object> out) {
    if (value != null && value.getClass().isArray()) {
      for (int i = 0; i < Array.getLength(value); i++) flatten(Array.get(value, i), out);
    } else {
      out.add(value);
    }
  }

  private static double number(Object value) {
    if (value instanceof Boolean) return (Boolean) value ? 1 : 0;
    return ((Number) value).doubleValue();
  }

  private static boolean isText(Object value) {
    return value instanceof String || value instanceof Character;
  }

  private static String joined(List<Object> values) {
    List<String> texts = new ArrayList<>();
    for (Object each : values) texts.add(String.valueOf(each).replaceAll("\0+$", ""));
    return quoted(String.join("|", texts));
  }

  void values(long[] shape, Object data) {
    text.append(", \"shape\": ").append(java.util.Arrays.toString(shape));
    List<Object> values = new ArrayList<>();
    flatten(data, values);
    if (!values.isEmpty() && isText(values.get(0))) {
      text.append(", \"text\": ").append(joined(values));
      return;
    }
    double sum = 0, weighted = 0;
    for (int i = 0; i < values.size(); i++) {
      double value = number(values.get(i));
      sum += value;
      weighted += value * (i + 1);
    }
    text.append(", \"sum\": ").append(finite(sum));
    text.append(", \"weighted\": ").append(finite(weighted));
  }

  private static String finite(double value) {
    return Double.isNaN(value) || Double.isInfinite(value) ? quoted("" + value) : "" + value;
  }

  void attribute(String name, Object data) {
    List<Object> values = new ArrayList<>();
    flatten(data, values);
    attributes.append(attributes.length() == 0 ? "" : ", ").append(quoted(name)).append(": ");
    if (!values.isEmpty() && isText(values.get(0))) {
      attributes.append(joined(values));
      return;
    }
    List<String> numbers = new ArrayList<>();
    for (Object each : values) numbers.add(finite(number(each)));
    attributes.append('[').append(String.join(", ", numbers)).append(']');
  }

  void print() {
    System.out.println(text + ", \"attributes\": {" + attributes + "}}");
  }

  static class Writer {
    private final String path;

    Writer(String path) {
      this.path = path;
    }

    Line line(String name) {
      return new Line(path, name);
    }

    void error(String name, Throwable error) {
      String why = error.toString();
      for (Throwable cause = error.getCause(); cause != null; cause = cause.getCause()) {
        why += " / " + cause;
      }
      System.out.println(new Line(path, name).text + ", \"error\": " + quoted(why) + "}");
    }

    void end() {
      System.out.println("{\"file\": " + quoted(path) + ", \"end\": true}");
    }
  }
}
