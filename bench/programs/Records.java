// Records.java - records, maps, text and threads in Java; prints a checksum.
// SPDX-License-Identifier: MIT
// The machine keeps its objects itself: blocks are its compilers', its classes' and its threads'.

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.zip.CRC32;
import java.util.zip.Deflater;

public final class Records {
    record Order(int id, String customer, int cents, List<String> words) {}

    static List<Order> orders(Random random, int count) {
        List<Order> orders = new ArrayList<>();
        for (int id = 0; id < count; id++) {
            List<String> words = new ArrayList<>();
            for (int i = random.nextInt(6); i >= 0; i--) words.add("word" + random.nextInt(3000));
            orders.add(new Order(id, "customer" + random.nextInt(500), random.nextInt(99999), words));
        }
        return orders;
    }

    static long sums(List<Order> orders) {
        Map<String, Long> byCustomer = orders.stream().collect(Collectors.groupingBy(
            Order::customer, TreeMap::new, Collectors.summingLong(Order::cents)));
        Map<String, Integer> counts = new HashMap<>();
        for (Order order : orders)
            for (String word : order.words()) counts.merge(word, 1, Integer::sum);
        return byCustomer.toString().hashCode() * 31L + new TreeMap<>(counts).hashCode();
    }

    // The library that compresses takes blocks of the process.
    static long packed(List<Order> orders) {
        byte[] text = orders.toString().getBytes(), room = new byte[65536];
        CRC32 sum = new CRC32();
        Deflater deflater = new Deflater(6);
        deflater.setInput(text);
        deflater.finish();
        while (!deflater.finished()) sum.update(room, 0, deflater.deflate(room));
        deflater.end();
        return sum.getValue();
    }

    public static void main(String[] arguments) throws InterruptedException {
        int rounds = Math.max(1, Integer.parseInt(arguments[0]) * 24 / 100);
        long[] results = new long[rounds];
        for (int round = 0; round < rounds; round += 2) {
            List<Thread> threads = new ArrayList<>();
            for (int i = round; i < Math.min(round + 2, rounds); i++) {
                int number = i;
                threads.add(new Thread(() -> {
                    List<Order> orders = orders(new Random(number), 20000);
                    results[number] = sums(orders) ^ packed(orders);
                }));
            }
            for (Thread thread : threads) thread.start();
            for (Thread thread : threads) thread.join();
        }
        long sum = 0;
        for (long result : results) sum = sum * 3 + result;
        System.out.println("checksum " + Long.toHexString(sum));
    }
}
