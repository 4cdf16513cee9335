import java.util.Base64;
import java.util.List;
import org.apache.beam.sdk.Pipeline;
import org.apache.beam.sdk.extensions.python.PythonExternalTransform;
import org.apache.beam.sdk.io.TextIO;
import org.apache.beam.sdk.options.PipelineOptions;
import org.apache.beam.sdk.options.PipelineOptionsFactory;
import org.apache.beam.sdk.schemas.Schema;
import org.apache.beam.sdk.transforms.DoFn;
import org.apache.beam.sdk.transforms.MapElements;
import org.apache.beam.sdk.transforms.ParDo;
import org.apache.beam.sdk.values.PCollection;
import org.apache.beam.sdk.values.PCollectionTuple;
import org.apache.beam.sdk.values.Row;
import org.apache.beam.sdk.values.TypeDescriptor;

/** Estimates from reports, one Base64 text a line; prints the rows of every output. */
public class EstimateFromJava {
  public interface Options extends PipelineOptions {
    String getService();
    void setService(String hostAndPort);

    String getReports();
    void setReports(String pattern);

    String getCollection();
    void setCollection(String pathOrJson);
  }

  static final Schema ARGUMENTS =
      Schema.builder()
          .addArrayField("collections", Schema.FieldType.STRING)
          .addStringField("window")
          .addInt64Field("min_reports")
          .build();

  public static void main(String[] args) {
    Options options = PipelineOptionsFactory.fromArgs(args).withValidation().as(Options.class);
    Pipeline pipeline = Pipeline.create(options);

    PCollection<byte[]> messages =
        pipeline
            .apply(TextIO.read().from(options.getReports()))
            .apply(MapElements.into(TypeDescriptor.of(byte[].class)).via(line -> Base64.getDecoder().decode(line)));

    PCollectionTuple outputs =
        messages.apply(
            PythonExternalTransform.<PCollection<byte[]>, PCollectionTuple>from(
                    "uldp_transforms.yaml.EstimateReports", options.getService())
                .withKwargs(
                    Row.withSchema(ARGUMENTS)
                        .withFieldValue("collections", List.of(options.getCollection()))
                        .withFieldValue("window", "6h")
                        .withFieldValue("min_reports", 100L)
                        .build()));

    for (String name : List.of("estimates", "values", "health", "ledger", "rejected", "counts")) {
      PCollection<Row> rows = outputs.get(name);
      rows.apply("Print " + name, ParDo.of(new Print(name)));
    }
    System.out.println(pipeline.run().waitUntilFinish());
  }

  static class Print extends DoFn<Row, Void> {
    private final String name;

    Print(String name) {
      this.name = name;
    }

    @ProcessElement
    public void process(@Element Row row) {
      System.out.println(name + " " + row.getValues());
    }
  }
}
