/* SPDX-License-Identifier: MIT */
/*
 * The list against a model: an array of the same names in the same order.
 */
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/util.h"
#include "support/suite.h"

#define N 12

struct item {
	struct list node;
	int name;
};

/* @head holds exactly the @n names of @want, read both ways. */
static void expect(const struct list *head, const int *want, size_t n)
{
	const struct list *l = head;
	size_t i = 0;

	list_each (node, head) {
		ck_assert_uint_lt(i, n);
		ck_assert_int_eq(container_of(node, struct item, node)->name,
				 want[i++]);
	}
	ck_assert_uint_eq(i, n);
	while ((l = l->prev) != head)
		ck_assert_int_eq(
			container_of((struct list *)l, struct item, node)->name,
			want[--i]);
	ck_assert_uint_eq(i, 0);
	ck_assert_int_eq(list_empty(head), n == 0);
}

static void items_init(struct item *items)
{
	for (int i = 0; i < N; i++) {
		items[i].name = i;
		list_init(&items[i].node);
	}
}

/* Takes @name out of the @n of @names. Return: how many are left. */
static size_t forget(int *names, size_t n, int name)
{
	size_t i = 0;

	while (i < n && names[i] != name)
		i++;
	if (i == n)
		return n;
	memmove(names + i, names + i + 1, (n - i - 1) * sizeof(*names));
	return n - 1;
}

START_TEST(what_is_appended_and_removed_at_random_keeps_its_order)
{
	struct item items[N];
	struct list head;
	int model[N];
	size_t n = 0;

	srandom(7);
	list_init(&head);
	items_init(items);
	for (int step = 0; step < 5000; step++) {
		struct item *it = &items[random() % N];

		if (list_empty(&it->node)) {
			list_append(&head, &it->node);
			model[n++] = it->name;
		} else {
			list_remove(&it->node);
			n = forget(model, n, it->name);
		}
		expect(&head, model, n);
	}
}
END_TEST

START_TEST(removing_what_is_not_linked_does_no_harm)
{
	struct item items[N];
	const int want[] = { 0, 2 };
	struct list head;

	list_init(&head);
	items_init(items);
	for (int i = 0; i < 3; i++)
		list_append(&head, &items[i].node);
	list_remove(&items[1].node);
	list_remove(&items[1].node);
	list_remove(&items[5].node);
	ck_assert(list_empty(&items[1].node));
	expect(&head, want, 2);
}
END_TEST

START_TEST(taking_a_list_leaves_an_empty_one_behind)
{
	const int all[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };

	for (size_t n = 0; n <= N; n++) {
		struct item items[N];
		struct list from, to;

		list_init(&from);
		items_init(items);
		for (size_t i = 0; i < n; i++)
			list_append(&from, &items[i].node);
		list_take(&to, &from);
		expect(&from, NULL, 0);
		expect(&to, all, n);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("list");
	TCase *tc = support_case(s, "list");

	tcase_add_test(tc,
		       what_is_appended_and_removed_at_random_keeps_its_order);
	tcase_add_test(tc, removing_what_is_not_linked_does_no_harm);
	tcase_add_test(tc, taking_a_list_leaves_an_empty_one_behind);
	return support_main(s);
}
