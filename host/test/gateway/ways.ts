// Both ways to a guest, for suites that must pass either way.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { guestsBehind } from '../../src/gateway/client.ts';
import { answerBehind } from '../../src/gateway/dns.ts';
import { GatewayProcess } from '../../src/gateway/launch.ts';
import { DIRECT_GUESTS, type Guests } from '../../src/guest/client.ts';
import type { AnswerMessage } from '../../src/network/dns/questions.ts';
import { FAKE_GATEWAY_UID } from '../../src/network/slots/slot.ts';

interface OpenWay {
  guests: Guests;
  readonly close: () => Promise<void>;
}

export interface TestGateway extends OpenWay {
  gateway: GatewayProcess;
  answer: AnswerMessage;
  folder: string;
}

export async function startGateway(): Promise<TestGateway> {
  const root = await mkdtemp(join(tmpdir(), 'berth-gateway-'));
  const folder = join(root, 'gateway');
  const gateway = new GatewayProcess({ folder, uid: FAKE_GATEWAY_UID, log: pino({ level: 'silent' }) });
  await gateway.start();
  return {
    gateway,
    folder,
    guests: guestsBehind(gateway),
    answer: answerBehind(gateway),
    close: async () => {
      await gateway.close();
      await rm(root, { recursive: true });
    },
  };
}

export const WAYS: Readonly<Record<string, () => Promise<OpenWay>>> = {
  directly: () => Promise.resolve({ guests: DIRECT_GUESTS, close: () => Promise.resolve() }),
  'through the gateway': startGateway,
};
