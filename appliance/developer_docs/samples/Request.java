// WEB_URL=... API_KEY=... CUIL=... java Request.java contrato.pdf
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public final class Request {
    private static final HttpClient CLIENT = HttpClient.newHttpClient();

    public static void main(String[] args) throws Exception {
        String cuil = System.getenv("CUIL");
        byte[] pdf = Files.readAllBytes(Path.of(args[0]));
        String sha256 = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(pdf));

        // 1. Upload the document. Repeated with the same key, it is the same document.
        String uploaded = post("/documents?nombre=contrato.pdf", "application/pdf",
                "doc-" + sha256, BodyPublishers.ofByteArray(pdf));

        // 2. Ask for the signature.
        String order = """
                {"documento": {"documentoId": "%s"}, "firmantes": [{"cuil": "%s"}]}
                """.formatted(field(uploaded, "documentoId"), cuil);
        String made = post("/requests", "application/json",
                "req-" + sha256 + "-" + cuil, BodyPublishers.ofString(order));

        // 3. See how it stands.
        String process = field(made, "procesoId");
        String request = send(to("/requests/" + process).GET());
        System.out.println(process + " " + field(request, "estado"));
    }

    private static String post(String path, String type, String key, BodyPublisher body)
            throws IOException, InterruptedException {
        return send(to(path).header("Content-Type", type).header("Idempotency-Key", key).POST(body));
    }

    private static HttpRequest.Builder to(String path) {
        return HttpRequest.newBuilder(URI.create(System.getenv("WEB_URL") + "/api/integration" + path))
                .header("X-Api-Key", System.getenv("API_KEY"));
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
