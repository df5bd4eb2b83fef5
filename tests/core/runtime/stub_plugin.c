/* A PJRT plugin without devices: it writes down the options it is given, and refuses.

   The layouts are those of PJRT's C API, version 0.x: xla/pjrt/c/pjrt_c_api.h of OpenXLA. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { size_t size; void* extension; const char* text; } Error;
typedef struct { size_t size; void* extension; Error* error; const char* message; size_t length; } Message;
typedef struct { size_t size; void* extension; Error* error; int code; } Code;
typedef struct {
  size_t size; void* extension; const char* name; size_t name_length; int type;
  union { const char* text; long long integer; const long long* integers; float number; char truth; } value;
  size_t length;
} Option;
typedef struct { size_t size; void* extension; const Option* options; size_t count; } Create;
typedef struct {
  size_t size; void* extension;
  struct { size_t size; void* extension; int major; int minor; } version;
  void* functions[200];
} Api;

static Error refusal = {sizeof(Error), 0, "No visible stub devices."};

static void destroy(Error* error) { (void)error; }
static void message(Message* args) { args->message = refusal.text; args->length = strlen(refusal.text); }
static Error* code(Code* args) { args->code = 9; return 0; } /* FAILED_PRECONDITION */
static Error* nothing(void* args) { (void)args; return 0; }

static Error* create(Create* args) {
  FILE* file = fopen(getenv("STUB_PLUGIN_OPTIONS"), "w");
  for (size_t i = 0; i < args->count; i++) {
    const Option* o = &args->options[i];
    fprintf(file, "%.*s=", (int)o->name_length, o->name);
    if (o->type == 0) fprintf(file, "%.*s\n", (int)o->length, o->value.text);
    else if (o->type == 1) fprintf(file, "%lld\n", o->value.integer);
    else if (o->type == 3) fprintf(file, "%g\n", o->value.number);
    else if (o->type == 4) fprintf(file, "%s\n", o->value.truth ? "true" : "false");
    else fprintf(file, "?\n");
  }
  fclose(file);
  return &refusal;
}

const Api* GetPjrtApi(void) {
  static Api api;
  api.size = sizeof(Api);
  api.version.size = sizeof(api.version);
  api.version.major = 0;
  api.version.minor = STUB_MINOR;
  for (int i = 0; i < 200; i++) api.functions[i] = nothing;
  api.functions[0] = destroy;
  api.functions[1] = message;
  api.functions[2] = code;
  api.functions[10] = create;
  return &api;
}
