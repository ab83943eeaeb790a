// What names.cc and other.cc have in common.
int hidden_elsewhere();
void elsewhere(int round);
