// What a sandbox uses: live figures of its guest and its host, and the sample from which a size is
// recommended.
import { z } from 'zod';
import { exampleMetrics, exampleMetricsSample } from '../route/examples.ts';
import { defineRoute } from '../route/route.ts';
import { allocation } from '../sandboxes/fields.ts';
import { sandboxParams } from '../sandboxes/sandboxes.ts';
import { timestamp } from '../route/text.ts';

const amount = z.number().nonnegative();

export const liveMetrics = z
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
            .describe('Share of all vCPUs that was in use since the sample before; null for the first look.'),
          busySeconds: amount,
        }),
        load: z.strictObject({ oneMinute: amount, fiveMinutes: amount, fifteenMinutes: amount }),
        memory: z.strictObject({ totalMib: amount, usedMib: amount, usedPercent: z.number().min(0).max(100) }),
        disk: z.strictObject({ totalMib: amount, usedMib: amount, usedPercent: z.number().min(0).max(100) }),
        network: z.strictObject({ receivedBytes: amount, sentBytes: amount }),
        processCount: z.int().nonnegative(),
      })
      .describe('What the machine says of itself. Bytes and times count from its boot.'),
    host: z
      .strictObject({
        cpuSeconds: amount,
        residentMemoryMib: amount,
        unsharedMemoryMib: amount,
        diskUsedMib: amount,
        network: z.strictObject({ receivedBytes: amount, sentBytes: amount }),
      })
      .describe('What the machine costs its host.'),
  })
  .meta({ id: 'LiveMetrics', description: 'What a sandbox uses at this moment.' });
export type LiveMetrics = z.infer<typeof liveMetrics>;

export const metricsSample = z
  .strictObject({
    sampledAt: timestamp,
    currentAllocation: allocation,
    recommendedAllocation: allocation,
    storedAsPending: z
      .boolean()
      .describe(
        "Whether the recommendation was stored as the sandbox's `pendingAllocation`: with profile `auto`, when it changed.",
      ),
    reason: z.string().describe('Why this is recommended, for people.'),
    cpuUsedPercent: z.number().min(0).max(100).nullable(),
    memoryUsedPercent: z.number().min(0).max(100),
    diskUsedPercent: z.number().min(0).max(100),
  })
  .meta({ id: 'MetricsSample', description: 'What a sandbox used, and the size that is recommended for it.' });
export type MetricsSample = z.infer<typeof metricsSample>;

export const getLiveMetrics = defineRoute({
  name: 'getLiveMetrics',
  summary: 'What the sandbox uses at this moment',
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

export const sampleMetrics = defineRoute({
  name: 'sampleMetrics',
  summary: 'Notes a sample and answers the current and the recommended allocation',
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
