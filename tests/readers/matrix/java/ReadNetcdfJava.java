// netCDF-Java, which Panoply, THREDDS and ncWMS use. dataset_lines.py explains the output.

import java.util.List;
import ucar.nc2.Attribute;
import ucar.nc2.Group;
import ucar.nc2.NetcdfFile;
import ucar.nc2.Variable;

public class ReadNetcdfJava {
  static void attributes(Line line, List<Attribute> attributes) {
    for (Attribute attribute : attributes) {
      if (Line.wanted(attribute.getShortName())) {
        Object value = attribute.isString() ? attribute.getStringValue()
                                            : attribute.getValues().copyTo1DJavaArray();
        line.attribute(attribute.getShortName(), value);
      }
    }
  }

  public static void main(String[] paths) {
    if (paths[0].equals("--version")) {
      System.out.println(Line.version(NetcdfFile.class));
      return;
    }
    for (String path : paths) {
      Line.Writer out = new Line.Writer(path);
      try (NetcdfFile file = NetcdfFile.open(path)) {
        Line root = out.line("/");
        attributes(root, file.getRootGroup().getAttributes());
        root.print();
        for (Variable variable : file.getVariables()) {
          try {
            Line line = out.line(variable.getFullNameEscaped());
            int[] extents = variable.getShape();
            long[] shape = new long[extents.length];
            for (int d = 0; d < shape.length; d++) shape[d] = extents[d];
            line.values(shape, variable.read().copyTo1DJavaArray());
            attributes(line, variable.getAttributes());
            line.print();
          } catch (Throwable error) {
            out.error(variable.getFullNameEscaped(), error);
          }
        }
      } catch (Throwable error) {
        out.error("", error);
      }
      out.end();
    }
  }
}
