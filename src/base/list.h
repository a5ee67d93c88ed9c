/* SPDX-License-Identifier: MIT */
/*
 * list.h - intrusive doubly linked list
 *
 * A node is linked in one list at most; an unlinked node points to itself, so
 * that removing it again does no harm.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *next, *prev;
};

#define list_each(node, head) \
	for (struct list *node = (head)->next; node != (head); node = node->next)

static inline void list_init(struct list *l)
{
	l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}

static inline void list_append(struct list *head, struct list *node)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

/* Unlinks @node; harmless if it is not linked. */
static inline void list_remove(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}

/* Moves everything in @from to the front of nothing: @to must be empty. */
static inline void list_take(struct list *to, struct list *from)
{
	list_init(to);
	if (list_empty(from))
		return;
	*to = *from;
	to->next->prev = to->prev->next = to;
	list_init(from);
}

#endif /* BASE_LIST_H */
