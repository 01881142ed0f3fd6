import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.common.utils.KafkaThread;

/**
 * Runs Kafka's command-line tools one after the other in one JVM, each from its main method.
 *
 * <p>A request on standard input is a count and as many strings: the class and its arguments. A response on standard
 * output is the exit code, the standard output and the standard error of the tool.
 */
public final class ToolServer {
    private static final ByteArrayOutputStream OUT = new ByteArrayOutputStream();
    private static final ByteArrayOutputStream ERR = new ByteArrayOutputStream();
    private static final List<Runnable> HOOKS = new ArrayList<>();
    private static volatile CompletableFuture<Integer> ended;

    public static void main(String[] arguments) throws Exception {
        DataInputStream requests = new DataInputStream(System.in);
        DataOutputStream responses = new DataOutputStream(new FileOutputStream(FileDescriptor.out));
        // Loggers and Scala's Console keep the first streams that they get, so these are never replaced.
        System.setIn(new ByteArrayInputStream(new byte[0]));
        System.setOut(new PrintStream(OUT, true));
        System.setErr(new PrintStream(ERR, true));
        Exit.setExitProcedure((code, message) -> exit(code));
        Exit.setHaltProcedure((code, message) -> exit(code));
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
        while (true) {
            String[] words;
            try {
                words = new String[requests.readInt()];
            } catch (EOFException end) {
                Runtime.getRuntime().halt(0);
                return;
            }
            for (int i = 0; i < words.length; i++) {
                words[i] = requests.readUTF();
            }
            int code = run(words);
            responses.writeInt(code);
            respond(responses, OUT);
            respond(responses, ERR);
            responses.flush();
        }
    }

    private static int run(String[] words) throws Exception {
        String[] arguments = Arrays.copyOfRange(words, 1, words.length);
        CompletableFuture<Integer> mine = new CompletableFuture<>();
        ended = mine;
        Thread thread = new Thread(() -> {
            try {
                Class.forName(words[0]).getMethod("main", String[].class).invoke(null, (Object) arguments);
                mine.complete(0);
            } catch (InvocationTargetException failure) {
                System.err.print("Exception in thread \"main\" ");
                failure.getCause().printStackTrace();
                mine.complete(1);
            } catch (ReflectiveOperationException failure) {
                failure.printStackTrace();
                mine.complete(1);
            }
        });
        thread.setDaemon(true);
        thread.start();
        int code = mine.get();
        for (Runnable hook : HOOKS) {
            hook.run();
        }
        HOOKS.clear();
        stopClients();
        return code;
    }

    /**
     * Stops the threads of clients that a tool has not closed, as at the end of its JVM. They would log between the
     * output of the next tools that the broker has ended.
     */
    private static void stopClients() throws InterruptedException {
        Thread[] threads = new Thread[Thread.activeCount() + 16];
        int count = Thread.enumerate(threads);
        for (int i = 0; i < count; i++) {
            if (threads[i] instanceof KafkaThread) {
                stop(threads[i]);
            }
        }
    }

    @SuppressWarnings({"deprecation", "removal"})
    private static void stop(Thread thread) throws InterruptedException {
        thread.setUncaughtExceptionHandler((dead, death) -> { });
        // A client that handles a response catches the first one.
        for (int attempt = 0; thread.isAlive() && attempt < 10; attempt++) {
            thread.stop();
            // A thread that waits for its sockets stops when it wakes.
            thread.interrupt();
            thread.join(200);
        }
    }

    /** As System.exit, this never returns, and neither a catch nor a finally of the tool runs afterwards. */
    private static void exit(int code) {
        ended.complete(code);
        while (true) {
            LockSupport.park();
        }
    }

    private static void respond(DataOutputStream responses, ByteArrayOutputStream written) throws Exception {
        System.out.flush();
        System.err.flush();
        byte[] bytes = written.toByteArray();
        written.reset();
        responses.writeInt(bytes.length);
        responses.write(bytes);
    }
}
