#include "book.h"

#include "report.h"

int AddressBook::books = 2;
int Derived::total = 3;

AddressBook::~AddressBook() = default;

bool AddressBook::AddContact(std::string &firstName, std::string &lastName, std::string &number) {
    USE(firstName);
    USE(lastName);
    USE(number);
    contacts.push_back({firstName, lastName, number, 0});
    return contacts.size() < static_cast<std::size_t>(limit);
}

bool AddressBook::AddContact(std::string const &firstName, int calls) {
    USE(firstName);
    USE(calls);
    contacts.push_back({firstName, "", "", calls});
    return calls > 2;
}

template <class T> T AddressBook::Total(T base) const {
    USE(base);
    return base + static_cast<T>(contacts.size());
}

int Derived::Sum(int more) {
    USE(more);
    USE(*this);
    return left + right + middle + own + more;
}

KEPT int related(Right *right, Left &left, Derived *derived, int &&moved) {
    USE(*right);
    USE(left);
    USE(*derived);
    USE(moved);
    return right->right + left.left + derived->own + moved;
}

KEPT int named(shapes::deep::Point const &point, shapes::Box<int> *box) {
    USE(point);
    USE(*box);
    return point.x + box->held[1] + shapes::counter + shapes::hidden;
}

KEPT int by_value(Plain plain, Copied copied, Moved moved, Empty, std::string text,
                  std::string_view view, int last) {
    USE(plain);
    USE(copied);
    USE(moved);
    USE(text);
    USE(view);
    USE(last);
    return plain.a + copied.a + moved.a + last;
}

KEPT int library(Library &of, std::shared_ptr<Contact> const &shared) {
    USE(of);
    USE(shared);
    return of.ints[0] + shared->calls;
}

static void add(AddressBook &book, std::string first, std::string last, std::string number) {
    BEGIN("AddressBook::AddContact(std::string&,std::string&,std::string&)");
    AS_TEXT("firstName", first);
    AS_TEXT("lastName", last);
    AS_TEXT("number", number);
    AS("firstName.size()", first.size());
    AS("lastName.length()", last.size());
    AS("len(number)", number.size());
    AS("number[1]", number[1]);
    AS("books", AddressBook::books);
    AS("this->limit", 3);
    AS("limit", 3);
    AS("AddressBook::books", AddressBook::books);
    END();
    book.AddContact(first, last, number);
}

static void call_related() {
    Derived it;
    it.left = 1, it.right = -2, it.middle = 30, it.own = 4;
    it.kind = Derived::Kind::Large;
    it.inner = {5, {6}};
    Derived *derived = &it;
    Right *right = derived;
    Left &left = it;
    int moved = 77;
    BEGIN("related");
    NUM(right->right);
    NUM(((Derived *)right)->own);
    NUM(((Derived *)right)->left);
    NUM(((Left *)derived)->left);
    NUM(((Right *)derived)->right);
    NUM(((Derived *)&left)->middle);
    NUM(derived->left);
    NUM(derived->right);
    NUM(derived->middle);
    NUM(derived->own);
    NUM(derived->total);
    NUM(derived->Left::left);
    NUM(derived->inner.u);
    AS("Derived::total", Derived::total);
    NUM(left.left);
    NUM(moved);
    FIELD("\"derived->kind\": {\"name\": \"Large\", \"value\": 300}");
    END();
    related(right, left, derived, static_cast<int &&>(moved));
    BEGIN("Derived::Sum");
    AS("more", 12);
    AS("own", it.own);
    AS("left", it.left);
    AS("right", it.right);
    AS("this->middle", it.middle);
    AS("total", Derived::total);
    AS("inner.i", it.inner.i);
    END();
    it.Sum(12);
}

static void call_named() {
    shapes::deep::Point point{10, -11};
    shapes::Box<int> held{{1, 2, 3}}, *box = &held;
    BEGIN("named");
    NUM(point.x);
    NUM(point.y);
    NUM(box->held[2]);
    AS_LIST("box->held", 1, 2, 3);
    NUM(shapes::deep::counter);
    NUM(shapes::counter);
    NUM(shapes::hidden);
    NUM(shapes::v1::hidden);
    NUM(sizeof(shapes::Box<int>));
    NUM(((shapes::Box<int> *)box)->held[1]);
    END();
    named(point, box);
}

static void call_by_value() {
    Plain plain{1, 1L << 40};
    Copied copied(-2);
    Moved moved(3);
    std::string text = "short";
    std::string_view view = "a view of eighteen";
    int last = 4;
    BEGIN("by_value");
    NUM(plain.a);
    NUM(plain.b);
    NUM(copied.a);
    NUM(moved.a);
    TEXT(text);
    NUM(text.size());
    NUM(view.size());
    NUM(view[2]);
    NUM(last);
    END();
    by_value(plain, copied, std::move(moved), {}, text, view, last);
}

static void call_library() {
    Library of;
    of.small = "abc";
    of.large = "a rather long text that is on the heap";
    of.view = of.large;
    of.contacts = {{"Ann", "Other", "1", 11}, {"Bob", "A last name that is not small", "2", 12}};
    of.ints = {4, -5, 6};
    of.row = {7, 8, -9};
    of.unique.reset(new Contact{"Cyd", "Unique", "3", 13});
    of.shared.reset(new Contact{"Dee", "Shared", "4", 14});
    of.option = 10;
    of.text = "optional";
    of.span = of.ints;
    of.map = {{1, "one"}, {2, "two"}};
    of.set = {1, 2, 3};
    of.hashed = {{1, 1}};
    of.list = {1, 2, 3, 4};
    of.number = -15;
    of.flag = true;
    of.first = of.unique.get();
    of.pair = {16, "second"};
    of.many.reset(new int[2]{17, 18});
    std::shared_ptr<Contact> shared = of.shared;
    BEGIN("library");
    TEXT(of.small);
    TEXT(of.large);
    NUM(of.small.size());
    NUM(of.large.size());
    NUM(of.view.size());
    NUM(of.contacts[1].calls);
    TEXT(of.contacts[1].lastName);
    TEXT(of.contacts[0].firstName);
    NUM(of.ints[1]);
    AS_LIST("of.ints[0:3]", 4, -5, 6);
    AS_LIST("of.row", 7, 8, -9);
    NUM(of.row[2]);
    NUM(of.unique->calls);
    TEXT(of.unique->lastName);
    NUM((*of.unique).calls);
    NUM(*of.option);
    FLAG(of.option.has_value());
    TEXT(*of.text);
    NUM(of.span[1]);
    NUM(of.span.size());
    NUM(of.map.size());
    NUM(of.set.size());
    NUM(of.hashed.size());
    NUM(of.list.size());
    AS("of.number", of.number);
    FIELD("\"of.flag\": true");
    AS("of.first->calls", of.first.load()->calls);
    NUM(of.pair.first);
    TEXT(of.pair.second);
    NUM(of.many[1]);
    NUM(shared->calls);
    TEXT(shared->firstName);
    AS("shared.use_count()", shared.use_count());
    END();
    library(of, shared);
}

int main() {
    AddressBook book(3);
    for (int round = 0; round < 3; round++) {
        add(book, "Ann", "Other", "555-1234");
        add(book, std::string(15 + round, 'x'), "A last name longer than any small string",
            "+00 1");
        book.AddContact("Bob", round);
        if (book.Total(round) < 0 || book.Total(0.5) < 0)
            return 1;
        call_related();
        call_named();
        call_by_value();
        call_library();
    }
}
