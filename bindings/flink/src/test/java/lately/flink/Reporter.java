package lately.flink;

import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.flink.metrics.Counter;
import org.apache.flink.metrics.Gauge;
import org.apache.flink.metrics.Metric;
import org.apache.flink.metrics.MetricConfig;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.metrics.reporter.MetricReporter;
import org.apache.flink.metrics.reporter.MetricReporterFactory;

/** Hands the metrics of the operator to the tests. */
public final class Reporter implements MetricReporter, MetricReporterFactory {
    private static final Map<Metric, String> METRICS = new ConcurrentHashMap<>();

    static void clear() {
        METRICS.clear();
    }

    /** The sum of the metrics of this name, over all subtasks. */
    static long sum(String name) {
        return METRICS.entrySet().stream()
                .filter(metric -> metric.getValue().equals(name))
                .mapToLong(metric -> value(metric.getKey()))
                .sum();
    }

    private static long value(Metric metric) {
        if (metric instanceof Counter) {
            return ((Counter) metric).getCount();
        }
        return ((Number) ((Gauge<?>) metric).getValue()).longValue();
    }

    @Override
    public MetricReporter createMetricReporter(Properties properties) {
        return this;
    }

    @Override
    public void open(MetricConfig config) {}

    @Override
    public void close() {}

    @Override
    public void notifyOfAddedMetric(Metric metric, String name, MetricGroup group) {
        String[] scope = group.getScopeComponents();
        if (scope[scope.length - 1].equals("lately")) {
            METRICS.put(metric, name);
        }
    }

    @Override
    public void notifyOfRemovedMetric(Metric metric, String name, MetricGroup group) {
        METRICS.remove(metric);
    }
}
