/* lazy_caller.c - calls a function of another library, which the loader looks for at the first
 * call. */
/* SPDX-License-Identifier: MIT */
double lazy_sum(double a, double b, double c, double d, double e, double f, double g, double h,
                long i, long j, long k, long l, long m, long n);
double lazy_call(double x, long y);

double lazy_call(double x, long y)
{
    return lazy_sum(x, x + 1, x + 2, x + 3, x + 4, x + 5, x + 6, x + 7, y, y + 1, y + 2, y + 3,
                    y + 4, y + 5);
}
