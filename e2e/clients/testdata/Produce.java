import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Produces what the plan on standard input says, and prints what became of each record; produce.py says what a plan is.
 * Apache Kafka's own client.
 */
public final class Produce {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        List<List<String>> answers = new ArrayList<>();
        for (JsonNode session : JSON.readTree(System.in)) {
            answers.add(produce(session));
        }
        JSON.writeValue(System.out, answers);
    }

    private static List<String> produce(JsonNode session) throws Exception {
        Map<String, Object> config = new HashMap<>();
        session.get("config").fields().forEachRemaining(e -> config.put(e.getKey(), e.getValue().asText()));
        String end = session.get("end").asText();
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
            if (!end.isEmpty()) {
                producer.initTransactions();
                producer.beginTransaction();
            }
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (JsonNode record : session.get("records")) {
                sent.add(producer.send(read(record)));
            }
            producer.flush();
            List<String> errors = new ArrayList<>();
            for (Future<RecordMetadata> answer : sent) {
                errors.add(error(answer));
            }
            if (end.equals("commit")) {
                producer.commitTransaction();
            } else if (end.equals("abort")) {
                producer.abortTransaction();
            }
            return errors;
        }
    }

    private static ProducerRecord<byte[], byte[]> read(JsonNode record) throws Exception {
        Long timestamp = record.has("timestamp") ? record.get("timestamp").asLong() : null;
        ProducerRecord<byte[], byte[]> out =
                new ProducerRecord<>(
                        record.get("topic").asText(), null, timestamp, plain(record.get("key")), plain(record.get("value")));
        for (JsonNode header : record.get("headers")) {
            out.headers().add(header.get("name").asText(), plain(header.get("value")));
        }
        return out;
    }

    private static byte[] plain(JsonNode base64) throws Exception {
        return base64.isNull() ? null : base64.binaryValue();
    }

    private static String error(Future<RecordMetadata> answer) throws InterruptedException {
        try {
            answer.get();
            return "";
        } catch (ExecutionException refused) {
            return Errors.forException(refused.getCause()).name();
        }
    }
}
