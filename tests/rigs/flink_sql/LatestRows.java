import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Pattern;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/** Runs the statements of files in Flink's SQL, one after the other, and prints the rows of the last one. */
public class LatestRows {
  private static final Pattern COMMENT = Pattern.compile("^--.*$", Pattern.MULTILINE);

  public static void main(String[] files) throws Exception {
    TableEnvironment tables = TableEnvironment.create(EnvironmentSettings.inBatchMode());
    tables.getConfig().set("table.local-time-zone", "UTC");
    for (String file : files) {
      String text = COMMENT.matcher(Files.readString(Path.of(file))).replaceAll("");
      for (String statement : text.split(";\\s*\n")) {
        if (statement.isBlank()) {
          continue;
        }
        try (CloseableIterator<Row> rows = tables.executeSql(statement).collect()) {
          if (statement.stripLeading().startsWith("SELECT")) {
            rows.forEachRemaining(row -> System.out.println("ROW " + join(row)));
          }
        }
      }
    }
  }

  private static String join(Row row) {
    StringBuilder line = new StringBuilder();
    for (int i = 0; i < row.getArity(); i++) {
      Object field = row.getField(i);
      line.append(i == 0 ? "" : "|").append(field == null ? "" : field);
    }
    return line.toString();
  }
}
