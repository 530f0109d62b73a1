import com.espertech.esper.common.client.EPCompiled;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.*;
import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.*;
import java.util.*;
import java.util.regex.*;

/**
 * Esper, as a whole process: many conditions over a stream of orders, with one thread.
 *
 * <p>{@code Esper CONDITIONS ORDERS SECONDS} deploys a statement for each condition (one a line: {@code symbol = 'X' AND
 * price > 1.5 AND qty > 7}), compiled once with parameters, which is much faster than compiling each. Then it sends the
 * orders (CSV, read before the time starts) until there are no more or the seconds are over. A pass over the first ones
 * lets the machine compile what it runs. The answer is a line with the seconds for the conditions (wall, CPU), the
 * number of orders and their CPU seconds, and a line for each condition with matches: its number, their count. Exit
 * code 3 means that the conditions alone took longer than that, or more memory than there is.
 */
class Esper {
    static final int TOO_SLOW = 3, WARM_ORDERS = 20_000, ORDERS_AT_ONCE = 100;
    static final Pattern CONDITION = Pattern.compile("symbol = '(\\w+)' AND price > ([\\d.]+) AND qty > (\\d+)");

    final EPRuntime runtime;
    final long[] counts;

    Esper(Configuration configuration, int conditions) {
        runtime = EPRuntimeProvider.getRuntime("benchmark", configuration);
        counts = new long[conditions];
    }

    public static void main(String[] arguments) throws Exception {
        List<String> conditions = Files.readAllLines(Path.of(arguments[0]));
        List<Object[]> orders = orders(Path.of(arguments[1]));
        long limit = (long) (Double.parseDouble(arguments[2]) * 1e9);
        Configuration configuration = new Configuration();
        configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
        String[] names = {"symbol", "price", "qty"};
        Object[] types = {String.class, double.class, int.class};
        configuration.getCommon().addEventType("Orders", names, types);

        Esper esper = new Esper(configuration, conditions.size());
        long start = System.nanoTime(), cpu = cpuNanoseconds();
        try {
            if (!esper.deploy(conditions, configuration, start + limit)) System.exit(TOO_SLOW);
        } catch (OutOfMemoryError error) {
            System.err.println("esper: " + error.getMessage());
            System.exit(TOO_SLOW);
        }
        double made = (System.nanoTime() - start) / 1e9, madeCpu = (cpuNanoseconds() - cpu) / 1e9;

        esper.send(orders.subList(0, Math.min(WARM_ORDERS, orders.size())), limit / 4);
        Arrays.fill(esper.counts, 0);
        cpu = cpuNanoseconds();
        int done = esper.send(orders, limit);
        double seconds = (cpuNanoseconds() - cpu) / 1e9;
        StringBuilder text = new StringBuilder(made + " " + madeCpu + " " + done + " " + seconds + "\n");
        for (int number = 0; number < esper.counts.length; number++)
            if (esper.counts[number] > 0) text.append(number).append(' ').append(esper.counts[number]).append('\n');
        System.out.print(text);
    }

    /** Columns of the orders; no value has a comma or quotes before the fifth one ends. */
    static List<Object[]> orders(Path path) throws Exception {
        List<Object[]> orders = new ArrayList<>();
        try (var lines = Files.lines(path)) {
            lines.skip(1).forEach(line -> {
                String[] cells = line.split(",", 6);
                orders.add(new Object[] {cells[1], Double.parseDouble(cells[3]), Integer.parseInt(cells[4])});
            });
        }
        return orders;
    }

    /** Deploys a statement for each condition; returns false if that takes too long. */
    boolean deploy(List<String> conditions, Configuration configuration, long end) throws Exception {
        String text = "select * from Orders(symbol = ?:s:string, price > ?:p:double, qty > ?:q:int)";
        EPCompiled compiled = EPCompilerProvider.getCompiler().compile(text, new CompilerArguments(configuration));
        for (int at = 0; at < conditions.size(); at++) {
            Matcher parts = CONDITION.matcher(conditions.get(at));
            if (!parts.matches()) throw new IllegalArgumentException(conditions.get(at));
            DeploymentOptions options = new DeploymentOptions();
            options.setStatementSubstitutionParameter(statement -> {
                statement.setObject("s", parts.group(1));
                statement.setObject("p", Double.parseDouble(parts.group(2)));
                statement.setObject("q", Integer.parseInt(parts.group(3)));
            });
            int number = at;
            EPDeployment deployment = runtime.getDeploymentService().deploy(compiled, options);
            deployment.getStatements()[0].addListener((found, gone, by, in) -> counts[number] += found.length);
            if (at % ORDERS_AT_ONCE == 0 && System.nanoTime() > end) return false;
        }
        return true;
    }

    /** Sends orders for that many nanoseconds; returns their number. */
    int send(List<Object[]> orders, long nanoseconds) {
        long end = System.nanoTime() + nanoseconds;
        EPEventService events = runtime.getEventService();
        int done = 0;
        while (done < orders.size() && (done % ORDERS_AT_ONCE != 0 || System.nanoTime() < end))
            events.sendEventObjectArray(orders.get(done++), "Orders");
        return done;
    }

    static long cpuNanoseconds() {
        return ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class).getProcessCpuTime();
    }
}
