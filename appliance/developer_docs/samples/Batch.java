// WEB_URL=... API_KEY=... CUIL=... java Batch.java enero.pdf febrero.pdf
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.Collections;
import java.util.HexFormat;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public final class Batch {
    private static final HttpClient CLIENT = HttpClient.newHttpClient();
    private static final String BOUNDARY = "rubrica-7d1f0c5a9b";

    public static void main(String[] args) throws Exception {
        String cuil = System.getenv("CUIL");

        // 1. Ask for all of them at once: a part for each PDF, in the order to be signed in.
        String documents = String.join(", ", Collections.nCopies(args.length, "{}"));
        String options = """
                {"firmante": {"cuil": "%s"}, "documentos": [%s]}""".formatted(cuil, documents);
        var body = new ByteArrayOutputStream();
        part(body, "name=\"options\"", "application/json", options.getBytes(StandardCharsets.UTF_8));
        for (int number = 0; number < args.length; number++) {
            Path pdf = Path.of(args[number]);
            String name = "name=\"pdf%d\"; filename=\"%s\"".formatted(number, pdf.getFileName());
            part(body, name, "application/pdf", Files.readAllBytes(pdf));
        }
        body.writeBytes(("--" + BOUNDARY + "--\r\n").getBytes(StandardCharsets.UTF_8));
        byte[] sha256 = MessageDigest.getInstance("SHA-256").digest(body.toByteArray());
        String batch = field(send(to("/batches", "multipart/form-data; boundary=" + BOUNDARY)
                .header("Idempotency-Key", "lote-" + HexFormat.of().formatHex(sha256))
                .POST(BodyPublishers.ofByteArray(body.toByteArray()))), "loteId");

        // 2. Wait until its documents are examined. A webhook tells it too: lote.listo.
        String told = send(to("/batches/" + batch, "application/json").GET());
        while (field(told, "estado").equals("en_preparacion")) {
            Thread.sleep(1000);
            told = send(to("/batches/" + batch, "application/json").GET());
        }
        if (!field(told, "estado").equals("listo")) {
            throw new IOException(told);
        }

        // 3. Open a session for it, whose token your page gets.
        String session = send(to("/sessions", "application/json")
                .POST(BodyPublishers.ofString("{\"loteId\": \"%s\"}".formatted(batch))));
        System.out.println(batch + " " + field(session, "tokenSession"));
    }

    private static void part(ByteArrayOutputStream body, String name, String type, byte[] content) {
        String head = "--%s\r\nContent-Disposition: form-data; %s\r\nContent-Type: %s\r\n\r\n"
                .formatted(BOUNDARY, name, type);
        body.writeBytes(head.getBytes(StandardCharsets.UTF_8));
        body.writeBytes(content);
        body.writeBytes("\r\n".getBytes(StandardCharsets.UTF_8));
    }

    private static HttpRequest.Builder to(String path, String type) {
        return HttpRequest.newBuilder(URI.create(System.getenv("WEB_URL") + "/api/integration" + path))
                .header("X-Api-Key", System.getenv("API_KEY"))
                .header("Content-Type", type);
    }

    private static String send(HttpRequest.Builder request) throws IOException, InterruptedException {
        var answer = CLIENT.send(request.build(), BodyHandlers.ofString());
        if (answer.statusCode() >= 400) {
            throw new IOException(field(answer.body(), "code") + ": " + field(answer.body(), "detail"));
        }
        return answer.body();
    }

    /** The first text of a name. Your program reads JSON with its own library. */
    private static String field(String json, String name) {
        Matcher found = Pattern.compile("\"" + name + "\":\"([^\"]*)\"").matcher(json);
        if (!found.find()) {
            throw new IllegalStateException("no " + name + " in the answer");
        }
        return found.group(1);
    }
}
