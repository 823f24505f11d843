-- A record of several years, made of nothing: see bench/large_record.py.
-- Names after a colon stand for what `fill` puts there; ids are hashes of numbers.

SET session_replication_role = replica;
SET synchronous_commit = off;
SET TIME ZONE 'UTC';

CREATE FUNCTION pg_temp.ident(kind text, n bigint) RETURNS text IMMUTABLE LANGUAGE sql
    AS $$ SELECT md5(kind || n::text)::uuid::text $$;
CREATE FUNCTION pg_temp.hash(kind text, n bigint) RETURNS text IMMUTABLE LANGUAGE sql
    AS $$ SELECT md5(kind || n::text) || md5(n::text || kind) $$;
CREATE FUNCTION pg_temp.octets(n bigint, size integer) RETURNS bytea IMMUTABLE LANGUAGE sql
    AS $$ SELECT decode(repeat(md5(n::text), size / 16), 'hex') $$;
-- When a request came in: four years, evenly.
CREATE FUNCTION pg_temp.at(n bigint) RETURNS timestamptz STABLE LANGUAGE sql
    AS $$ SELECT ':now'::timestamptz - interval '1461 days' * (1 - n::float8 / :requests)
        - interval '1 hour' $$;
-- Who signs and who asks: one person in fifty requests, one integrator in two.
CREATE FUNCTION pg_temp.signer(n bigint) RETURNS bigint IMMUTABLE LANGUAGE sql
    AS $$ SELECT CASE WHEN n % 50 = 0 THEN 2 ELSE 1 + (n * 31) % :people END $$;
CREATE FUNCTION pg_temp.asker(n bigint) RETURNS text IMMUTABLE LANGUAGE sql
    AS $$ SELECT pg_temp.ident('integrator', CASE WHEN n % 2 = 0 THEN 0 ELSE n % 100 END) $$;

CREATE TEMP TABLE cuil AS
    SELECT row_number() OVER () AS n, '20' || dni || digit AS cuil FROM (
        SELECT dni, (11 - (10 + substr(dni, 1, 1)::int * 3 + substr(dni, 2, 1)::int * 2
            + substr(dni, 3, 1)::int * 7 + substr(dni, 4, 1)::int * 6
            + substr(dni, 5, 1)::int * 5 + substr(dni, 6, 1)::int * 4
            + substr(dni, 7, 1)::int * 3 + substr(dni, 8, 1)::int * 2) % 11) % 11 AS digit
        FROM (SELECT (20000000 + n * 7)::text AS dni
            FROM generate_series(1, :people * 2) AS n) AS numbers
    ) AS made WHERE digit < 10 LIMIT :people;

INSERT INTO integrator (id, code, name, created)
    SELECT pg_temp.ident('integrator', n), 'organismo-' || n, 'Organismo ' || n,
        pg_temp.at(0) FROM generate_series(0, 99) AS n;
INSERT INTO document_key (integrator, key_sealed, created)
    SELECT id, pg_temp.octets(1, 64), created FROM integrator WHERE code LIKE 'organismo-%';
INSERT INTO api_key (id, integrator, label, key_index, hint, created, revoked)
    SELECT 'k' || n, pg_temp.ident('integrator', n % 100), 'clave ' || n,
        pg_temp.hash('key', n), 'rk_…' || n, pg_temp.at(n),
        CASE WHEN n >= 200 THEN pg_temp.at(n + 1) END
    FROM generate_series(0, 499) AS n;
INSERT INTO integrator_domain (id, integrator, origin, created)
    SELECT pg_temp.ident('domain', n), pg_temp.ident('integrator', n % 100),
        'https://sitio-' || n || '.example', pg_temp.at(n) FROM generate_series(0, 299) AS n;
INSERT INTO blocked_origin (integrator, origin, first, last, count)
    SELECT pg_temp.ident('integrator', n % 100), 'https://otro-' || n || '.example',
        pg_temp.at(n), pg_temp.at(n + 1), 3 FROM generate_series(0, 799) AS n;

INSERT INTO person (id, cuil, name, email_sealed, email_index, locale, state, vouched_by,
        created)
    SELECT pg_temp.ident('person', n), cuil,
        (ARRAY['Ana', 'Juan', 'María José', 'Íñigo', 'Sofía', 'Martín', 'Lucía'])[1 + n % 7]
            || ' ' || (ARRAY['Pérez', 'Núñez', 'Gómez', 'Álvarez', 'Rodríguez', 'Díaz',
            'Fernández', 'Sosa', 'Romero', 'Suárez', 'Benítez'])[1 + n % 11],
        pg_temp.octets(n, 80), pg_temp.hash('email', n), 'es',
        CASE WHEN n % 50 = 0 THEN 'disabled' WHEN n % 50 = 1 THEN 'invited'
            ELSE 'active' END,
        (ARRAY['officer', 'vouched', 'external'])[1 + n % 3],
        pg_temp.at(n * (:requests / :people)) FROM cuil;
INSERT INTO login_secret (person, phc, totp_sealed, last_step)
    SELECT pg_temp.ident('person', n), '$argon2id$v=19$m=65536,t=3,p=1$' || md5(n::text),
        pg_temp.octets(n, 64), 50000000 FROM cuil WHERE n % 50 <> 1;
INSERT INTO signing_secret (person, salt, argon2, pepper_version, verifier_sha256, counted,
        locked_at)
    SELECT pg_temp.ident('person', n), pg_temp.octets(n, 16),
        '{"m":262144,"p":1,"t":3,"v":19}', 1, pg_temp.hash('verifier', n), 0,
        CASE WHEN n % 1000 = 7 THEN pg_temp.at(:requests) END FROM cuil WHERE n % 50 <> 1;
INSERT INTO enrolment (id, code_index, person, totp_sealed, created, until, used)
    SELECT pg_temp.ident('enrolment', n), pg_temp.hash('enrolment', n),
        pg_temp.ident('person', n), pg_temp.octets(n, 64), at, at + interval '3 days',
        CASE WHEN n % 50 <> 1 THEN at + interval '1 day' END
    FROM (SELECT n, pg_temp.at(n * (:requests / :people)) AS at FROM cuil) AS links;
INSERT INTO revocation_pin (person, phc, made)
    SELECT pg_temp.ident('person', n), '$argon2id$v=19$m=65536,t=3,p=1$' || md5(n::text),
        pg_temp.at(n) FROM cuil WHERE n % 4 = 0;

-- Each person's key in force, and of one in five a former one. The first people's
-- certificates can be read.
INSERT INTO credential (id, person, key_mode, algorithm, key_version, key_token, master,
        blob_w, method_w, method_k, "outer", spki, spki_sha256, certificate, chain,
        not_before, not_after, vouched_by, state, created)
    SELECT pg_temp.ident('credential', n), pg_temp.ident('person', 1 + (n - 1) % :people),
        'wrapped', 'rsa-2048', 1, 'firma', 1, pg_temp.octets(n, 48), 'aes-kwp', 'aes-kwp',
        pg_temp.octets(n, 1232), pg_temp.octets(n, 288), pg_temp.hash('spki', n),
        CASE WHEN (n - 1) % :people < 10 THEN decode(':certificate', 'hex') ELSE pg_temp.octets(n, 1104) END,
        '', ends - interval '2 years', ends, 'officer',
        CASE WHEN n > :people THEN
            CASE WHEN n % 3 = 0 THEN 'revoked' ELSE 'superseded' END ELSE 'active' END,
        ends - interval '2 years'
    FROM (SELECT n, CASE WHEN n > :people THEN ':now'::timestamptz - interval '30 days'
            ELSE ':now'::timestamptz END + interval '2 years' * (n % :people) / :people
            + interval '1 hour' AS ends
        FROM generate_series(1, :people * 6 / 5) AS n) AS keys;
INSERT INTO certificate (serial, kind, issuer, credential, der, not_before, not_after,
        state, revoked_at, reason, issued)
    SELECT md5('serial' || id), 'signer', repeat('ca', 20), id, certificate, not_before,
        not_after, CASE WHEN state = 'revoked' THEN 'revoked' ELSE 'valid' END,
        CASE WHEN state = 'revoked' THEN not_before + interval '300 days' END,
        CASE WHEN state = 'revoked' THEN 'superseded' END, not_before FROM credential;
INSERT INTO ocsp_response (serial, state, der, this_update, next_update)
    SELECT serial, state, pg_temp.octets(1, 1600), at, at + interval '7 days'
    FROM (SELECT serial, state, ':now'::timestamptz
            - interval '5 days' * random() AS at FROM certificate
        WHERE not_after > ':now'::timestamptz) AS lasting;
INSERT INTO expiry_notice (kind, subject, not_after, days, at)
    SELECT 'credential', id, not_after, 30, not_after - interval '30 days' FROM credential
    WHERE not_after < ':now'::timestamptz + interval '30 days';
INSERT INTO former_certificate (id, credential, certificate, chain, not_before, not_after,
        replaced)
    SELECT pg_temp.ident('former', n), pg_temp.ident('credential', n),
        pg_temp.octets(n, 1104), '', pg_temp.at(n), pg_temp.at(n + 1), pg_temp.at(n)
    FROM generate_series(1, greatest(:people / 10, 3000)) AS n;
INSERT INTO hsm_task (id, kind, person, input, state, created, fence, output, reason, share,
        turn, swept)
    SELECT pg_temp.ident('task', n), (ARRAY['issue', 'renew'])[1 + n % 2],
        pg_temp.ident('person', 1 + n % :people),
        '{"credential":"' || pg_temp.ident('credential', 1 + n % :people) || '"}',
        CASE WHEN n % 500 = 0 THEN 'failed' ELSE 'done' END,
        pg_temp.at(n * (:requests / (:people * 2))), 1, '{}', '', md5(n::text), 0,
        CASE WHEN n % 2 = 0 THEN pg_temp.at(:requests) END
    FROM generate_series(0, :people * 2) AS n;

INSERT INTO document (id, integrator, sha256, size_bytes, inspection, created)
    SELECT pg_temp.ident('document', n), pg_temp.asker(n),
        pg_temp.hash('document', n), 90000 + n % 50000,
        ':inspection',
        pg_temp.at(n) FROM generate_series(1, :requests) AS n;
INSERT INTO document_repair (document, integrator, sha256, damage)
    SELECT pg_temp.ident('document', n), pg_temp.asker(n),
        pg_temp.hash('damaged', n), '["surroundings"]'
    FROM generate_series(1, :requests, 100) AS n;
INSERT INTO signing_process (id, integrator, created)
    SELECT pg_temp.ident('process', n), pg_temp.asker(n), pg_temp.at(n)
    FROM generate_series(1, :requests) AS n;

-- Of the newest fiftieth two in three are still to be signed; of a thousand of all others
-- 931 are signed. Every fortieth waits for the one before it, or did.
CREATE TEMP TABLE made AS
    SELECT n, pg_temp.at(n) AS at, CASE
        WHEN n > :requests * 0.98 AND n % 3 > 0 THEN
            CASE WHEN n % 40 = 1 THEN 'en_espera'
                WHEN n % 997 = 1 THEN 'en_proceso' ELSE 'pendiente' END
        WHEN word < 931 THEN 'firmada' WHEN word < 971 THEN 'vencida'
        WHEN word < 983 THEN 'rechazada' WHEN word < 993 THEN 'cancelada'
        ELSE 'fallida' END AS state
    FROM (SELECT n, (n::bigint * 7919) % 1000 AS word FROM generate_series(1, :requests) AS n) AS r;
INSERT INTO request_batch (id, integrator, created, api_key, reference)
    SELECT pg_temp.ident('lote', n), pg_temp.asker(n), pg_temp.at(n), 'k' || n % 500,
        'lote-' || n FROM generate_series(0, greatest(:requests / 1000, 3000)) AS n;
-- Of every two thousand one is a batch, the largest that there may be.
INSERT INTO signature_request (id, process, seq, person, integrator, document, name, state,
        reason, origin, created, expires, params_sha256, activation, level, batch)
    SELECT n, pg_temp.ident('process', CASE WHEN n % 40 = 1 AND n > 1 THEN n - 1 ELSE n END),
        CASE WHEN n % 40 = 1 AND n > 1 THEN 1 ELSE 0 END,
        pg_temp.ident('person', pg_temp.signer(n)),
        pg_temp.asker(n), pg_temp.ident('document', n),
        'contrato-' || n || '.pdf', state, '',
        CASE WHEN n % 3 = 0 THEN 'frame' ELSE 'operador' END, at,
        CASE WHEN n % 4 > 0 THEN greatest(at, ':now'::timestamptz - interval '10 days')
            + interval '30 days' END,
        CASE WHEN state IN ('firmada', 'fallida', 'en_proceso')
            THEN pg_temp.hash('params', n) END,
        CASE WHEN state IN ('firmada', 'fallida', 'en_proceso')
            THEN pg_temp.ident('activation', n) END,
        CASE WHEN state = 'firmada' THEN 'B-LT' END,
        CASE WHEN n / 1000 % 2 = 0 THEN pg_temp.ident('lote', n / 1000) END FROM made;
SELECT setval('signature_request_id_seq', :requests);

-- What a worker has in hand waits for an authority, under a lease.
INSERT INTO activation (id, person, credential, state, factors, created, claim_by,
        key_until, finish_until, lease_owner, lease_until, fence, progress, outside, reason)
    SELECT pg_temp.ident('activation', n), pg_temp.ident('person', pg_temp.signer(n)),
        pg_temp.ident('credential', pg_temp.signer(n)),
        CASE state WHEN 'firmada' THEN 'done' WHEN 'fallida' THEN 'failed'
            ELSE 'finishing' END,
        '["pwd","otp","sign-pwd"]', at, at + interval '60 s', at + interval '60 s',
        CASE state WHEN 'en_proceso' THEN ':now'::timestamptz + interval '1 day'
            ELSE at + interval '300 s' END, 'signing/h/1/' || n,
        CASE state WHEN 'en_proceso' THEN ':now'::timestamptz + interval '1 hour'
            ELSE at + interval '1 s' END, 1, 1, state = 'en_proceso', ''
    FROM made WHERE state IN ('firmada', 'fallida', 'en_proceso');
INSERT INTO activation_item (activation, seq, request, document_sha256, params,
        params_sha256, state, reason, contents_at, contents_length, signature, code)
    SELECT pg_temp.ident('activation', n), 0, n, pg_temp.hash('document', n),
        '{"fontColor":"BLACK","fontName":"Serif","fontSize":8,"fontStyle":"PLAIN","page":1,"restriccion":"NO_VALUE","visible":true,"x":null,"y":null,"zoomPercent":100}',
        pg_temp.hash('params', n),
        CASE state WHEN 'firmada' THEN 'done' WHEN 'fallida' THEN 'failed'
            ELSE 'keyed' END, '', 90000, 20000, pg_temp.octets(n, 256),
        upper(substr(md5('code' || n), 1, 26))
    FROM made WHERE state IN ('firmada', 'fallida', 'en_proceso');
INSERT INTO intent (id, activation, item, attempt, digest, state, at, closed)
    SELECT pg_temp.ident('intent', n), pg_temp.ident('activation', n), 0, 1,
        pg_temp.hash('digest', n), 'completada', at, at + interval '10 ms'
    FROM made WHERE state IN ('firmada', 'en_proceso');
INSERT INTO signed_document (request, version, integrator, sha256, size_bytes, level, made)
    SELECT n, 1, pg_temp.asker(n), pg_temp.hash('signed', n), 120000,
        'B-LT', at + interval '1 s' FROM made WHERE state = 'firmada';
INSERT INTO level_upkeep (id, request, integrator, wanted, tsa, outside, due, tries, reason,
        created, fence)
    SELECT pg_temp.ident('upkeep', n), n, pg_temp.asker(n), 'B-LTA',
        '[]', false, ':now'::timestamptz + interval '1 day' + interval '5 years'
            * n / :requests, 0, '', at, 0
    FROM made WHERE state = 'firmada' AND n % 5 = 0;
INSERT INTO signing_batch (id, person, requests, params, refused, asked)
    SELECT pg_temp.ident('batch', n), pg_temp.ident('person', 1 + n % :people), '[1,2,3]',
        '{}', '{}', ':now'::timestamptz - interval '1 hour'
    FROM generate_series(1, greatest(:requests / 200, 3000)) AS n;

-- What is kept for hours or days.
INSERT INTO idempotency (scope, key, fingerprint, created)
    SELECT pg_temp.hash('scope', n), md5('key' || n), pg_temp.hash('finger', n),
        ':now'::timestamptz - interval '20 hours' * n / :requests * 10
    FROM generate_series(1, greatest(:requests / 10, 3000)) AS n;
INSERT INTO download_link (key_index, request, until)
    SELECT pg_temp.hash('link', n), n, ':now'::timestamptz + interval '5 minutes'
    FROM generate_series(1, greatest(:requests / 50, 3000)) AS n;
INSERT INTO login_attempt (id, at, address, account_index, kind, person, outcome, until)
    SELECT pg_temp.ident('login', n), at,
        '10.' || n % 7 || '.' || n % 199 || '.' || n % 251, pg_temp.hash('account',
        n % :people), (ARRAY['password', 'code'])[1 + n % 2],
        pg_temp.ident('person', 1 + n % :people),
        CASE WHEN n % 20 = 0 THEN 'wrong' ELSE 'done' END, at + interval '5 minutes'
    FROM (SELECT n, ':now'::timestamptz - interval '20 hours' * n / :requests * 5 AS at
        FROM generate_series(1, greatest(:requests / 5, 3000)) AS n) AS tries;
INSERT INTO known_address (known_index, at)
    SELECT pg_temp.hash('known', n), ':now'::timestamptz - interval '10 days' * random()
    FROM generate_series(1, :people) AS n;
INSERT INTO attempt_slot (id, person, request, at, outcome)
    SELECT pg_temp.ident('slot', n), pg_temp.ident('person', 1 + n % :people), n,
        ':now'::timestamptz - interval '20 hours' * n / :requests * 20, 'right'
    FROM generate_series(1, greatest(:requests / 20, 3000)) AS n;
INSERT INTO embed_session (id, public_id, token_index, bearer_index, integrator, api_key,
        state, issued, until, person, document, document_name, request)
    SELECT pg_temp.ident('session', n), substr(md5('public' || n), 1, 24),
        pg_temp.hash('token', n), pg_temp.hash('bearer', n),
        pg_temp.asker(n), 'k' || n % 100,
        CASE WHEN n % 20 = 0 THEN 'open' ELSE 'ended' END,
        ':now'::timestamptz - interval '10 hours' * n / :requests * 50,
        ':now'::timestamptz + interval '10 minutes', pg_temp.ident('person', 1 + n % :people),
        pg_temp.ident('document', n), 'contrato.pdf', CASE WHEN n % 20 > 0 THEN n END
    FROM generate_series(1, greatest(:requests / 50, 3000)) AS n;
INSERT INTO embed_session_document (session, sha256, integrator, size_bytes, brought)
    SELECT id, pg_temp.hash('brought', row_number() OVER ()), integrator, 90000, issued
    FROM embed_session WHERE state = 'open';
INSERT INTO outside_status (kind, subject, der, this_update, next_update)
    SELECT 'ocsp', pg_temp.hash('outside', n), pg_temp.octets(n, 1600),
        ':now'::timestamptz - interval '1 hour', ':now'::timestamptz + interval '3 days'
    FROM generate_series(1, greatest(:people / 10, 3000)) AS n;

-- The audit: five rows a request, each writer's in a row. Hashes are not of their rows.
INSERT INTO audit_writer (id, role, started, n, hash)
    SELECT pg_temp.ident('writer', n), (ARRAY['api/1', 'embed/1', 'signing/h/1',
        'chores/h', 'admin'])[1 + n % 5],
        pg_temp.at(n * (:requests / :writers)) - interval '1 s', 5 * (:requests / :writers),
        pg_temp.hash('row', n) FROM generate_series(0, :writers - 1) AS n;
INSERT INTO audit_event (writer, n, prev, hash, at, event, actor, integrator, request,
        activation, attempt, detail)
    SELECT pg_temp.ident('writer', (n - 1) / (:requests / :writers)),
        5 * ((n - 1) % (:requests / :writers)) + step, pg_temp.hash('row', 5 * n + step - 1),
        pg_temp.hash('row', 5 * n + step), pg_temp.at(n) + interval '1 s' * step,
        CASE step WHEN 1 THEN
            CASE n % 50 WHEN 0 THEN 'login.password_wrong' WHEN 1 THEN 'session.opened'
                WHEN 2 THEN 'link.created' WHEN 3 THEN 'certificate.renewed'
                ELSE 'request.created' END
            WHEN 2 THEN 'activation.created' WHEN 3 THEN 'key.intended'
            WHEN 4 THEN 'key.used' ELSE 'request.signed' END,
        CASE WHEN step < 3 THEN 'person:' || pg_temp.ident('person', pg_temp.signer(n))
            ELSE 'worker:signing/h/1' END,
        pg_temp.asker(n),
        CASE WHEN step > 1 OR n % 50 > 3 THEN n END,
        CASE WHEN step > 1 THEN pg_temp.ident('activation', n) END,
        CASE WHEN step IN (3, 4) THEN 1 END,
        '{"credential":"' || pg_temp.ident('credential', pg_temp.signer(n))
            || '","document":"' || pg_temp.hash('document', n) || '"}'
    FROM generate_series(1, (:requests / :writers) * :writers) AS n,
        generate_series(1, 5) AS step;

DROP TABLE made, cuil;
RESET session_replication_role;
