// Operator settings in tests.
import { DEFAULT_MACHINE_RATES } from '@berth/contract/billing/machine-rates.ts';
import {
  API_STREAMS,
  BODIES_IN_FLIGHT_MIB,
  FAIR_SHARES,
  PREVIEW_VISITORS,
  SIGN_UPS_PER_HOUR,
} from '@berth/contract/route/limits.ts';
import type { Settings } from '../../src/services/context/settings.ts';

export const SETTINGS: Settings = {
  publicUrl: 'http://berth.example.test',
  previewUrl: 'http://previews.example.test',
  previewCookies: 'all',
  consoleFolder: null,
  // Sweeps make many calls with one key.
  requestsPerMinute: 1_000_000,
  orgRequestsPerMinute: 10_000_000,
  bodiesInFlightMib: BODIES_IN_FLIGHT_MIB,
  shares: FAIR_SHARES,
  streams: API_STREAMS,
  visitors: { ...PREVIEW_VISITORS, requestsPerMinute: 1_000_000 },
  sessionTokenMinutes: 60,
  reauthenticateMinutes: 10,
  signUp: 'invited',
  signUpsPerHour: SIGN_UPS_PER_HOUR,
  capGraceSeconds: 300,
  machineRates: DEFAULT_MACHINE_RATES,
  trustedProxies: [],
  git: {
    baseUrl: 'https://git.example.test',
    allowedOrigins: ['https://other.example.test', 'http://127.0.0.1:3000'],
    cloneTimeoutSeconds: 60,
    cloneMaxMib: 1_024,
  },
  modelEndpoints: {
    openai: ['https://api.openai.test', 'http://127.0.0.1:3001/proxy'],
    anthropic: ['https://api.anthropic.test'],
  },
};
