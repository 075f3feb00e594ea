// Server.java - a web server: each request packs a text and unpacks it again in native memory.
// SPDX-License-Identifier: MIT

import com.sun.net.httpserver.HttpServer;
import java.io.ByteArrayOutputStream;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;
import java.util.zip.CRC32;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

public final class Server {
    static final byte[] TEXT = text();

    static byte[] text() {
        StringBuilder text = new StringBuilder();
        for (int id = 0; id < 4000; id++) text.append("order ").append(id * 7919L % 10007).append(' ');
        return text.toString().getBytes(StandardCharsets.US_ASCII);
    }

    // Deflater, Inflater and direct buffers hold their memory outside of the Java heap.
    static long roundTrip() throws Exception {
        CRC32 sum = new CRC32();
        for (int turn = 0; turn < 4; turn++) {
            Deflater deflater = new Deflater(3);
            deflater.setInput(TEXT);
            deflater.finish();
            ByteBuffer packed = ByteBuffer.allocateDirect(TEXT.length + 64);
            deflater.deflate(packed);
            deflater.end();
            packed.flip();
            Inflater inflater = new Inflater();
            inflater.setInput(packed);
            ByteArrayOutputStream text = new ByteArrayOutputStream();
            byte[] room = new byte[8192];
            for (int count; (count = inflater.inflate(room)) > 0;) text.write(room, 0, count);
            inflater.end();
            sum.update(text.toByteArray());
        }
        return sum.getValue();
    }

    public static void main(String[] arguments) throws Exception {
        InetSocketAddress address = new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0]));
        HttpServer server = HttpServer.create(address, 0);
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.createContext("/", exchange -> {
            try {
                byte[] body = Long.toHexString(roundTrip()).getBytes(StandardCharsets.US_ASCII);
                exchange.sendResponseHeaders(200, body.length);
                exchange.getResponseBody().write(body);
            } catch (Exception failed) {
                exchange.sendResponseHeaders(500, -1);
            }
            exchange.close();
        });
        server.start();
    }
}
