// A file that has a static variable of a name that another file has, too.
#include "names.h"

static int hidden = 900;

int hidden_elsewhere() { return hidden; }

void elsewhere(int round) { hidden += round; }
