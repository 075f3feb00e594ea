# records.py - data classes made, linked, sorted, grouped, changed and dropped; prints a checksum.
# SPDX-License-Identifier: MIT
"""Usage: records.py PER_CENT"""
from __future__ import annotations

import dataclasses
import random
import sys

CUSTOMERS = 2500     # at 100 per cent
ORDERS_MAX = 12
MONTHS = 6


@dataclasses.dataclass(order=True, frozen=True)
class Item:
    price: float
    name: str
    count: int


@dataclasses.dataclass
class Order:
    number: int
    items: list[Item]
    customer: Customer = dataclasses.field(repr=False, compare=False)
    note: str = ""

    def total(self):
        return sum(item.price * item.count for item in self.items)


@dataclasses.dataclass(slots=True)
class Customer:
    name: str
    orders: list[Order] = dataclasses.field(default_factory=list)
    tags: set[str] = dataclasses.field(default_factory=set)


def order(source, number, customer):
    items = [Item(source.randrange(10_000) / 100, f"thing {source.randrange(500)}",
                  source.randint(1, 5)) for _ in range(source.randint(1, 5))]
    return Order(number, items, customer, note="n" * source.randrange(120))


def month(source, customers, number):
    """New orders for some customers; old ones go; some customers go altogether."""
    for customer in customers:
        if source.random() < 0.4:
            for _ in range(source.randint(1, ORDERS_MAX)):
                number += 1
                customer.orders.append(order(source, number, customer))
            customer.tags.add(f"month {number % 97}")
        if len(customer.orders) > ORDERS_MAX:
            customer.orders = [dataclasses.replace(old, note=old.note[:40])
                               for old in customer.orders[len(customer.orders) // 2:]]
    for place in range(0, len(customers), 23):
        customers[place] = Customer(f"heir of {customers[place].name}"[:60])
    return number


def main():
    count = max(100, CUSTOMERS * int(sys.argv[1]) // 100)
    source = random.Random(18150618)
    customers = [Customer(f"customer {number}") for number in range(count)]
    number, checksum = 0, 0.0
    for _ in range(MONTHS):
        number = month(source, customers, number)
        items = sorted(item for customer in customers for one in customer.orders
                       for item in one.items)
        groups = {}
        for item in items:
            groups.setdefault(item.name, []).append((item.price, item.count))
        checksum += sum(len(group) * group[-1][0] for group in groups.values())
        checksum += max(one.total() for customer in customers for one in customer.orders)
    text = repr(customers[:50])
    print(f"{number} orders, checksum {checksum:.2f}, text {len(text)}")


main()
