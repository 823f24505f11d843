/* A PKCS#11 module for tests that wraps a real one and does what it is told to.

   PKCS11_SHIM_MODULE   path of the real module
   PKCS11_SHIM_PARAMS   parameter string for C_Initialize (NSS softokn wants one,
                        and the binding passes none)
   PKCS11_SHIM_CONTROL  folder of `rules`, `counts` and `signed`; without it calls
                        only pass through

   rules   one a line: `number function token action value times`, read anew at
           each call. Function and token may be `*`; times -1 is for ever. Actions:
             code   answer this CKR value and do nothing
             lose   do it, then answer this CKR value: the result is lost
             delay  wait so many milliseconds, then do it
             play   wait so many milliseconds, then say that it was done: as an HSM
                    that computes elsewhere, and for C_UnwrapKey, C_SignInit, C_Sign
                    and C_DestroyObject alone. A signature has 256 bytes, all 1
             hang   never return
             abort  crash, as a segmentation fault in a module would
   counts  64-bit words, shared by all processes: calls by function (the order of
           `names` below), then how often each rule was used, then how often it was
           started for one thread, and for several (CKF_OS_LOCKING_OK)
   signed  one line a C_Sign: token, CKA_ID of the key in hex or `-`, data in hex

   Started for one thread, it aborts as soon as two are inside at once, as the real
   module would some time later.

   Built by tests/support/hsm/pkcs11_shim.py, which writes the rules. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <p11-kit/pkcs11.h>

enum { INITIALIZE, GETSLOTLIST, OPENSESSION, LOGIN, FINDOBJECTSINIT, FINDOBJECTS,
       SIGNINIT, SIGN, GENERATEKEY, GENERATEKEYPAIR, WRAPKEY, UNWRAPKEY,
       DESTROYOBJECT, GETATTRIBUTEVALUE, GENERATERANDOM, FUNCTIONS };
static const char *const names[FUNCTIONS] = {
    "C_Initialize", "C_GetSlotList", "C_OpenSession", "C_Login",
    "C_FindObjectsInit", "C_FindObjects", "C_SignInit", "C_Sign",
    "C_GenerateKey", "C_GenerateKeyPair", "C_WrapKey", "C_UnwrapKey",
    "C_DestroyObject", "C_GetAttributeValue", "C_GenerateRandom" };

enum { RULES = 4096, SESSIONS = 256, LABEL = 32, ID = 64, SIGNATURE = 256 };
struct shared { unsigned long calls[FUNCTIONS], used[RULES], started[2]; };
struct session { CK_SESSION_HANDLE handle; int played; char token[LABEL + 1], key[2 * ID + 1]; };

static CK_FUNCTION_LIST own, *real;
static struct shared *shared;
static char rules_path[4096], signed_path[4096];
static struct session sessions[SESSIONS];
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER; /* of `sessions` */
static int several, inside; /* threads: may they be many; how many are in a call */

static struct session *of(CK_SESSION_HANDLE handle)
{
    struct session *found = NULL;
    pthread_mutex_lock(&turn);
    for (int i = 0; i < SESSIONS && !found; i++)
        if (sessions[i].handle == handle && handle)
            found = &sessions[i];
    pthread_mutex_unlock(&turn);
    return found;
}

static void enter(void)
{
    if (__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST) > 1 && !several) {
        fputs("pkcs11_shim: two threads in a module that was started for one\n", stderr);
        abort();
    }
}

static CK_RV leave(CK_RV result)
{
    __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
    return result;
}

/* What the rules order for this call: a code to answer before it (`before`) or
   after it (`after`), CKR_OK for none; or that it is not done at all (`played`). */
struct order { CK_RV before, after; int played; };

static struct order gate(int function, const char *token)
{
    struct order order = { CKR_OK, CKR_OK, 0 };
    char name[64], at[64], action[16];
    long number, value, times;
    FILE *rules;

    if (!shared)
        return order;
    __atomic_fetch_add(&shared->calls[function], 1, __ATOMIC_SEQ_CST);
    if (!(rules = fopen(rules_path, "re")))
        return order;
    while (fscanf(rules, "%ld %63s %63s %15s %ld %ld",
                  &number, name, at, action, &value, &times) == 6) {
        if (strcmp(name, "*") && strcmp(name, names[function]))
            continue;
        if (strcmp(at, "*") && strcmp(at, token))
            continue;
        /* Whoever counts up to `times` obeys: exactly so many, of all processes. */
        unsigned long before = __atomic_fetch_add(
            &shared->used[number % RULES], 1, __ATOMIC_SEQ_CST);
        if (times >= 0 && before >= (unsigned long)times)
            continue;
        if (!strcmp(action, "code"))
            order.before = value;
        else if (!strcmp(action, "lose"))
            order.after = value;
        else if (!strcmp(action, "delay"))
            usleep(value * 1000);
        else if (!strcmp(action, "play")) {
            usleep(value * 1000);
            order.played = 1;
        } else if (!strcmp(action, "hang"))
            for (;;)
                pause();
        else if (!strcmp(action, "abort"))
            abort();
    }
    fclose(rules);
    return order;
}

static struct order gate_in(int function, CK_SESSION_HANDLE handle)
{
    struct session *session = of(handle);
    return gate(function, session ? session->token : "-");
}

#define PASS(gated, call) \
    do { \
        enter(); \
        struct order given = (gated); \
        if (given.before != CKR_OK || given.played) return leave(given.before); \
        CK_RV result = (call); \
        return leave(given.after != CKR_OK ? given.after : result); \
    } while (0)

static void hex(char *out, const unsigned char *in, unsigned long count)
{
    for (unsigned long i = 0; i < count; i++)
        sprintf(out + 2 * i, "%02x", in[i]);
    out[2 * count] = 0;
}

/* The layout of NSS's CK_C_INITIALIZE_ARGS, one word longer than the standard's. */
struct nss_arguments { void *mutex[4]; CK_FLAGS flags; char *parameters; void *reserved; };

static CK_RV initialize(void *arguments)
{
    struct nss_arguments nss = { { 0 }, CKF_OS_LOCKING_OK, getenv("PKCS11_SHIM_PARAMS"), 0 };
    CK_C_INITIALIZE_ARGS *given = arguments;
    several = given && given->flags & CKF_OS_LOCKING_OK;
    if (shared)
        __atomic_fetch_add(&shared->started[several], 1, __ATOMIC_SEQ_CST);
    memset(sessions, 0, sizeof sessions);
    PASS(gate(INITIALIZE, "-"),
         real->C_Initialize(nss.parameters ? (void *)&nss : arguments));
}

static CK_RV get_slot_list(unsigned char present, CK_SLOT_ID *slots, unsigned long *count)
{
    PASS(gate(GETSLOTLIST, "-"), real->C_GetSlotList(present, slots, count));
}

static CK_RV open_one(CK_SLOT_ID slot, CK_FLAGS flags, void *application,
                      CK_NOTIFY notify, CK_SESSION_HANDLE *handle)
{
    CK_TOKEN_INFO info;
    char token[LABEL + 1] = "-";
    if (real->C_GetTokenInfo(slot, &info) == CKR_OK) {
        memcpy(token, info.label, LABEL);
        for (int end = LABEL; end && token[end - 1] == ' '; end--)
            token[end - 1] = 0;
    }
    struct order order = gate(OPENSESSION, token);
    if (order.before != CKR_OK)
        return order.before;
    CK_RV result = real->C_OpenSession(slot, flags, application, notify, handle);
    pthread_mutex_lock(&turn);
    for (int i = 0; result == CKR_OK && i < SESSIONS; i++)
        if (!sessions[i].handle || sessions[i].handle == *handle) {
            sessions[i].handle = *handle;
            strcpy(sessions[i].token, token);
            break;
        }
    pthread_mutex_unlock(&turn);
    return order.after != CKR_OK ? order.after : result;
}

static CK_RV open_session(CK_SLOT_ID slot, CK_FLAGS flags, void *application,
                          CK_NOTIFY notify, CK_SESSION_HANDLE *handle)
{
    enter();
    return leave(open_one(slot, flags, application, notify, handle));
}

static CK_RV close_session(CK_SESSION_HANDLE handle)
{
    struct session *session = of(handle);
    if (session)
        session->handle = 0;
    return real->C_CloseSession(handle);
}

static CK_RV login(CK_SESSION_HANDLE s, CK_USER_TYPE user, unsigned char *pin, unsigned long n)
{ PASS(gate_in(LOGIN, s), real->C_Login(s, user, pin, n)); }

static CK_RV find_init(CK_SESSION_HANDLE s, CK_ATTRIBUTE *t, unsigned long n)
{ PASS(gate_in(FINDOBJECTSINIT, s), real->C_FindObjectsInit(s, t, n)); }

static CK_RV find(CK_SESSION_HANDLE s, CK_OBJECT_HANDLE *o, unsigned long n, unsigned long *c)
{ PASS(gate_in(FINDOBJECTS, s), real->C_FindObjects(s, o, n, c)); }

static CK_RV sign_init(CK_SESSION_HANDLE s, CK_MECHANISM *m, CK_OBJECT_HANDLE key)
{
    unsigned char id[ID];
    CK_ATTRIBUTE wanted = { CKA_ID, id, sizeof id };
    struct session *session = of(s);
    if (session && shared) {
        session->key[0] = 0;
        if (real->C_GetAttributeValue(s, key, &wanted, 1) == CKR_OK && wanted.ulValueLen <= ID)
            hex(session->key, id, wanted.ulValueLen);
    }
    enter();
    struct order order = gate_in(SIGNINIT, s);
    if (session)
        session->played = order.played;
    if (order.before != CKR_OK || order.played)
        return leave(order.before);
    CK_RV result = real->C_SignInit(s, m, key);
    return leave(order.after != CKR_OK ? order.after : result);
}

static CK_RV play_signature(unsigned char *signature, unsigned long *length)
{
    if (signature)
        memset(signature, 1, SIGNATURE);
    *length = SIGNATURE;
    return CKR_OK;
}

static CK_RV sign_one(CK_SESSION_HANDLE s, unsigned char *data, unsigned long count,
                      unsigned char *signature, unsigned long *length)
{
    struct session *session = of(s);
    char text[1024], line[2048];
    if (!signature && session && session->played)
        return play_signature(NULL, length);
    if (!signature) /* the length is asked for; nothing is signed */
        return real->C_Sign(s, data, count, signature, length);
    struct order order = gate_in(SIGN, s);
    if (order.before != CKR_OK) {
        /* A C_Sign that fails ends its operation: have the real one forget it. */
        unsigned char unseen[1024];
        unsigned long room = sizeof unseen;
        real->C_Sign(s, data, count, unseen, &room);
        return order.before;
    }
    if (order.played)
        return play_signature(signature, length);
    CK_RV result = real->C_Sign(s, data, count, signature, length);
    if (result == CKR_OK && session && shared && 2 * count < sizeof text) {
        hex(text, data, count);
        int size = snprintf(line, sizeof line, "%s %s %s\n", session->token,
                            session->key[0] ? session->key : "-", text);
        int file = open(signed_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (file < 0 || write(file, line, size) != size)
            abort(); /* a test that counts must not count wrong */
        close(file);
    }
    return order.after != CKR_OK ? order.after : result;
}

static CK_RV sign(CK_SESSION_HANDLE s, unsigned char *data, unsigned long count,
                  unsigned char *signature, unsigned long *length)
{
    enter();
    return leave(sign_one(s, data, count, signature, length));
}

static CK_RV generate_key(CK_SESSION_HANDLE s, CK_MECHANISM *m, CK_ATTRIBUTE *t,
                          unsigned long n, CK_OBJECT_HANDLE *key)
{ PASS(gate_in(GENERATEKEY, s), real->C_GenerateKey(s, m, t, n, key)); }

static CK_RV generate_key_pair(CK_SESSION_HANDLE s, CK_MECHANISM *m, CK_ATTRIBUTE *u,
                               unsigned long un, CK_ATTRIBUTE *r, unsigned long rn,
                               CK_OBJECT_HANDLE *public, CK_OBJECT_HANDLE *private)
{ PASS(gate_in(GENERATEKEYPAIR, s), real->C_GenerateKeyPair(s, m, u, un, r, rn, public, private)); }

static CK_RV wrap_key(CK_SESSION_HANDLE s, CK_MECHANISM *m, CK_OBJECT_HANDLE by,
                      CK_OBJECT_HANDLE key, unsigned char *out, unsigned long *n)
{ PASS(gate_in(WRAPKEY, s), real->C_WrapKey(s, m, by, key, out, n)); }

static CK_RV unwrap_key(CK_SESSION_HANDLE s, CK_MECHANISM *m, CK_OBJECT_HANDLE by,
                        unsigned char *in, unsigned long in_n, CK_ATTRIBUTE *t,
                        unsigned long n, CK_OBJECT_HANDLE *key)
{ *key = by; /* where it is played */
  PASS(gate_in(UNWRAPKEY, s), real->C_UnwrapKey(s, m, by, in, in_n, t, n, key)); }

static CK_RV destroy_object(CK_SESSION_HANDLE s, CK_OBJECT_HANDLE object)
{ PASS(gate_in(DESTROYOBJECT, s), real->C_DestroyObject(s, object)); }

static CK_RV get_attribute_value(CK_SESSION_HANDLE s, CK_OBJECT_HANDLE object,
                                 CK_ATTRIBUTE *t, unsigned long n)
{ PASS(gate_in(GETATTRIBUTEVALUE, s), real->C_GetAttributeValue(s, object, t, n)); }

static CK_RV generate_random(CK_SESSION_HANDLE s, unsigned char *out, unsigned long n)
{ PASS(gate_in(GENERATERANDOM, s), real->C_GenerateRandom(s, out, n)); }

static void open_control(const char *folder)
{
    char path[4096];
    snprintf(rules_path, sizeof rules_path, "%s/rules", folder);
    snprintf(signed_path, sizeof signed_path, "%s/signed", folder);
    snprintf(path, sizeof path, "%s/counts", folder);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        abort();
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (shared == MAP_FAILED)
        abort();
}

CK_RV C_GetFunctionList(CK_FUNCTION_LIST **list)
{
    if (!real) {
        const char *module = getenv("PKCS11_SHIM_MODULE"), *control = getenv("PKCS11_SHIM_CONTROL");
        void *handle = module ? dlopen(module, RTLD_NOW | RTLD_LOCAL) : NULL;
        CK_RV (*get)(CK_FUNCTION_LIST **) = handle ? dlsym(handle, "C_GetFunctionList") : NULL;
        if (!get || get(&real) != CKR_OK)
            return CKR_GENERAL_ERROR;
        if (control)
            open_control(control);
        own = *real;
        own.C_Initialize = initialize;
        own.C_GetSlotList = get_slot_list;
        own.C_OpenSession = open_session;
        own.C_CloseSession = close_session;
        own.C_Login = login;
        own.C_FindObjectsInit = find_init;
        own.C_FindObjects = find;
        own.C_SignInit = sign_init;
        own.C_Sign = sign;
        own.C_GenerateKey = generate_key;
        own.C_GenerateKeyPair = generate_key_pair;
        own.C_WrapKey = wrap_key;
        own.C_UnwrapKey = unwrap_key;
        own.C_DestroyObject = destroy_object;
        own.C_GetAttributeValue = get_attribute_value;
        own.C_GenerateRandom = generate_random;
    }
    *list = &own;
    return CKR_OK;
}

/* Also called by its name (hsm_config/pkcs11/tokens.py), on a module that is started. */
CK_RV C_InitToken(CK_SLOT_ID slot, unsigned char *pin, unsigned long n, unsigned char *label)
{
    return real->C_InitToken(slot, pin, n, label);
}
