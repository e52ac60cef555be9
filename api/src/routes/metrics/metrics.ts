// Wire format of metrics.
import { getLiveMetrics, sampleMetrics } from '@berth/contract/metrics/metrics.ts';
import * as metrics from '../../services/metrics/metrics.ts';
import { bind } from '../../call/bind.ts';

export const metricsRoutes = [
  bind(getLiveMetrics, async (context, { sandbox, signal }) => ({
    metrics: await metrics.liveMetrics(context, sandbox, signal),
  })),
  bind(sampleMetrics, async (context, { actor, sandbox, signal }) => ({
    sample: await metrics.sampleMetrics(context, actor, sandbox, signal),
  })),
];
