// jhdf, a reader of HDF5 in pure Java. dataset_lines.py explains the output.

import io.jhdf.HdfFile;
import io.jhdf.api.Attribute;
import io.jhdf.api.Dataset;
import io.jhdf.api.Group;
import io.jhdf.api.Node;
import java.io.File;
import java.util.Arrays;

public class ReadJhdf {
  static void walk(Line.Writer out, Group group) {
    for (Node node : group) {
      String name = node.getPath().replaceAll("^/|/$", "");
      try {
        if (node instanceof Group) {
          walk(out, (Group) node);
        } else if (node instanceof Dataset) {
          Dataset dataset = (Dataset) node;
          Line line = out.line(name);
          Object data = dataset.isEmpty() ? new double[0] : dataset.getData();
          line.values(shape(dataset.getDimensions()), data);
          attributes(line, node);
          line.print();
        }
      } catch (Throwable error) {
        out.error(name, error);
      }
    }
  }

  static long[] shape(int[] extents) {
    return Arrays.stream(extents).asLongStream().toArray();
  }

  static void attributes(Line line, Node node) {
    for (Attribute attribute : node.getAttributes().values()) {
      if (Line.wanted(attribute.getName())) {
        line.attribute(attribute.getName(), attribute.getData());
      }
    }
  }

  public static void main(String[] paths) {
    if (paths[0].equals("--version")) {
      System.out.println(Line.version(HdfFile.class));
      return;
    }
    for (String path : paths) {
      Line.Writer out = new Line.Writer(path);
      try (HdfFile file = new HdfFile(new File(path))) {
        Line line = out.line("/");
        attributes(line, file);
        line.print();
        walk(out, file);
      } catch (Throwable error) {
        out.error("", error);
      }
      out.end();
    }
  }
}
