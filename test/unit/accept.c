/* SPDX-License-Identifier: MIT */
/*
 * What each errno of accept4(2) says about the listening socket.
 */
#include <errno.h>

#include "base/util.h"
#include "net/accept.h"
#include "support/suite.h"

/* accept(2) lists all of these, as its own, of the network, or as seen. */
static const int of_client[] = {
	ECONNABORTED, EINTR,	 EPERM,	     EPROTO,	      ENETDOWN,
	ENOPROTOOPT,  EHOSTDOWN, ENONET,     EHOSTUNREACH,    EOPNOTSUPP,
	ENETUNREACH,  ETIMEDOUT, ECONNRESET, ESOCKTNOSUPPORT, EPROTONOSUPPORT,
};
static const int pauses[] = { EMFILE, ENFILE, ENOBUFS, ENOMEM,
			      ENOSR,  ENOSYS, EACCES,  EFAULT };
static const int gone[] = { EBADF, EINVAL, ENOTSOCK };

static enum accept_verdict expected(int err)
{
	if (err == EAGAIN || err == EWOULDBLOCK)
		return ACCEPT_EMPTY;
	for (size_t i = 0; i < array_size(of_client); i++)
		if (of_client[i] == err)
			return ACCEPT_CLIENT;
	for (size_t i = 0; i < array_size(gone); i++)
		if (gone[i] == err)
			return ACCEPT_GONE;
	return ACCEPT_PAUSE;
}

/* No errno that Linux has, nor one that it does not have yet, may spin: what is
 * not known pauses. */
START_TEST(every_errno_has_its_verdict)
{
	for (int err = 1; err < 4096; err++)
		ck_assert_msg(accept_verdict(err) == expected(err), "errno %d",
			      err);
	for (size_t i = 0; i < array_size(pauses); i++)
		ck_assert_int_eq(accept_verdict(pauses[i]), ACCEPT_PAUSE);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("accept");
	TCase *tc = support_case(s, "accept");

	tcase_add_test(tc, every_errno_has_its_verdict);
	return support_main(s);
}
