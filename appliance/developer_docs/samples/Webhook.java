import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Instant;
import java.util.Base64;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

final class Webhook {
    /** Whether a message is ours; `body` as it came. */
    static boolean isOurs(String secret, byte[] body, String id, String timestamp, String signatures)
            throws GeneralSecurityException {
        Mac mac = Mac.getInstance("HmacSHA256");
        byte[] key = Base64.getDecoder().decode(secret.substring("whsec_".length()));
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        mac.update((id + "." + timestamp + ".").getBytes(StandardCharsets.UTF_8));
        String signature = "v1," + Base64.getEncoder().encodeToString(mac.doFinal(body));
        byte[] wanted = signature.getBytes(StandardCharsets.UTF_8);
        boolean found = false;
        for (String given : signatures.split(" ")) {
            found |= MessageDigest.isEqual(wanted, given.getBytes(StandardCharsets.UTF_8));
        }
        return found && Math.abs(Instant.now().getEpochSecond() - Long.parseLong(timestamp)) <= 300;
    }
}
