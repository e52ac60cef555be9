// Wire format of metrics.
import { getLiveMetrics, getMetricsHistory, sampleMetrics } from '@berth/contract/metrics/metrics.ts';
import { METRICS_WINDOW_SECONDS } from '@berth/contract/route/limits.ts';
import { metricsHistory } from '../../services/metrics/history.ts';
import * as metrics from '../../services/metrics/metrics.ts';
import { bind } from '../../call/bind.ts';

export const metricsRoutes = [
  bind(getLiveMetrics, async (context, { sandbox, signal }) => ({
    metrics: await metrics.liveMetrics(context, sandbox, signal),
  })),
  bind(getMetricsHistory, async (context, { sandbox, query, signal }) => ({
    history: await metricsHistory(context, sandbox, query.windowSeconds ?? METRICS_WINDOW_SECONDS.default, signal),
  })),
  bind(sampleMetrics, async (context, { actor, sandbox, signal }) => ({
    sample: await metrics.sampleMetrics(context, actor, sandbox, signal),
  })),
];
