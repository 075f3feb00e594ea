/* lazy_callee.c - takes as many numbers as there are registers for them. */
/* SPDX-License-Identifier: MIT */
double lazy_sum(double a, double b, double c, double d, double e, double f, double g, double h,
                long i, long j, long k, long l, long m, long n);

double lazy_sum(double a, double b, double c, double d, double e, double f, double g, double h,
                long i, long j, long k, long l, long m, long n)
{
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h
         + (double)(9 * i + 10 * j + 11 * k + 12 * l + 13 * m + 14 * n);
}
