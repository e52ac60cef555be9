// Resource use of a sandbox: live metrics of guest and host, and the samples from which a size is
// recommended.
import { z } from 'zod';
import { exampleMetrics, exampleMetricsHistory, exampleMetricsSample } from '../route/examples.ts';
import { METRICS_WINDOW_SECONDS } from '../route/limits.ts';
import { numberInQuery } from '../route/number-in-query.ts';
import { defineRoute } from '../route/route.ts';
import { allocation } from '../sandboxes/fields.ts';
import { sandboxParams } from '../sandboxes/sandboxes.ts';
import { timestamp } from '../route/text.ts';

const amount = z.number().nonnegative();

const liveMetrics = z
  .strictObject({
    sampledAt: timestamp,
    guest: z
      .strictObject({
        uptimeSeconds: amount,
        cpu: z.strictObject({
          vcpu: z.int().positive(),
          usedPercent: z
            .number()
            .min(0)
            .max(100)
            .nullable()
            .describe('Use of all vCPUs since the previous sample; null for the first one.'),
          busySeconds: amount,
        }),
        load: z.strictObject({ oneMinute: amount, fiveMinutes: amount, fifteenMinutes: amount }),
        memory: z.strictObject({ totalMib: amount, usedMib: amount, usedPercent: z.number().min(0).max(100) }),
        disk: z.strictObject({ totalMib: amount, usedMib: amount, usedPercent: z.number().min(0).max(100) }),
        network: z.strictObject({ receivedBytes: amount, sentBytes: amount }),
        processCount: z.int().nonnegative(),
      })
      .describe(
        'Reported by the guest. Bytes and times are counted from the boot of its kernel. The kernel of a new sandbox ' +
          'was booted in the template, so compare two responses for the use in between.',
      ),
    host: z
      .strictObject({
        cpuSeconds: amount,
        residentMemoryMib: amount,
        unsharedMemoryMib: amount,
        diskUsedMib: amount,
        network: z.strictObject({ receivedBytes: amount, sentBytes: amount }),
      })
      .describe('Measured on the host.'),
  })
  .meta({ id: 'LiveMetrics', description: 'Current resource use of a sandbox.' });
export type LiveMetrics = z.infer<typeof liveMetrics>;

const metricsSample = z
  .strictObject({
    sampledAt: timestamp,
    currentAllocation: allocation,
    recommendedAllocation: allocation,
    storedAsPending: z
      .boolean()
      .describe(
        "Whether the recommendation was stored as the sandbox's `pendingAllocation`. Only with profile " +
          '`auto`, and only if it changed.',
      ),
    reason: z.string().describe('Human-readable reason for the recommendation.'),
    cpuUsedPercent: z.number().min(0).max(100).nullable(),
    memoryUsedPercent: z.number().min(0).max(100),
    diskUsedPercent: z.number().min(0).max(100),
  })
  .meta({ id: 'MetricsSample', description: 'A sample of resource use, and the recommended size.' });
export type MetricsSample = z.infer<typeof metricsSample>;

const known = amount.nullable();

const metricsHistory = z
  .strictObject({
    stepSeconds: z.int().positive().describe('Time between two points outside gaps.'),
    points: z
      .array(
        z.strictObject({
          at: timestamp,
          cpuUsedPercent: z
            .number()
            .min(0)
            .max(100)
            .nullable()
            .describe('Use of all vCPUs since the previous point, with the emulation of their devices.'),
          residentMemoryMib: known,
          unsharedMemoryMib: known,
          diskUsedMib: known,
          receivedBytesPerSecond: known.describe('Mean since the previous point.'),
          sentBytesPerSecond: known.describe('Mean since the previous point.'),
        }),
      )
      .describe(
        'Oldest first. A gap, as of a sleep, begins with a point of nulls and lasts until the next point. Rates are ' +
          'also null in the first point after a gap. The first point is the oldest that the host has kept.',
      ),
  })
  .meta({
    id: 'MetricsHistory',
    description:
      'Resource use of a sandbox in the past, measured on the host as `host` of its live metrics. The host keeps it ' +
      'in memory: a restart of the host daemon, or a host with very many sandboxes, begins a new one.',
  });
export type MetricsHistory = z.infer<typeof metricsHistory>;

export const getLiveMetrics = defineRoute({
  name: 'getLiveMetrics',
  summary: 'Returns the current resource use of a sandbox',
  method: 'GET',
  path: '/v1/sandboxes/{sandboxId}/metrics/live',
  auth: ['session', 'api_key'],
  permission: 'sandbox.read',
  request: { params: sandboxParams },
  response: { status: 200, body: z.strictObject({ metrics: liveMetrics }) },
  errors: ['sandbox_state_conflict', 'sandbox_unreachable', 'host_unavailable'],
  activity: null,
  published: true,
  example: { answer: { metrics: exampleMetrics } },
});

export const getMetricsHistory = defineRoute({
  name: 'getMetricsHistory',
  summary: 'Returns the resource use of a sandbox in the last day, also while it sleeps; wakes nothing',
  method: 'GET',
  path: '/v1/sandboxes/{sandboxId}/metrics/history',
  auth: ['session', 'api_key'],
  permission: 'sandbox.read',
  request: {
    params: sandboxParams,
    query: z.strictObject({
      windowSeconds: numberInQuery({
        ...METRICS_WINDOW_SECONDS,
        description:
          `Length of the period that ends now; default ${METRICS_WINDOW_SECONDS.default}. Up to an hour in steps of ` +
          '10 s, longer in steps of 60 s.',
      }).optional(),
    }),
  },
  response: { status: 200, body: z.strictObject({ history: metricsHistory }) },
  errors: ['sandbox_state_conflict', 'metrics_history_unsupported', 'sandbox_unreachable', 'host_unavailable'],
  activity: null,
  published: true,
  example: { query: { windowSeconds: 600 }, answer: { history: exampleMetricsHistory } },
});

export const sampleMetrics = defineRoute({
  name: 'sampleMetrics',
  summary: 'Records a sample and returns the current and the recommended allocation',
  method: 'POST',
  path: '/v1/sandboxes/{sandboxId}/metrics/sample',
  auth: ['session', 'api_key'],
  permission: 'sandbox.metrics',
  request: { params: sandboxParams, body: z.strictObject({}).optional() },
  response: { status: 200, body: z.strictObject({ sample: metricsSample }) },
  errors: ['sandbox_state_conflict', 'sandbox_unreachable', 'host_unavailable'],
  activity: 'sandbox_metrics_sample',
  published: true,
  example: { answer: { sample: exampleMetricsSample } },
});
