// The operator's choices in tests.
import type { Settings } from '../src/services/settings.ts';

export const SETTINGS: Settings = {
  publicUrl: 'http://berth.example.test',
  // Sweeps call often, with one key.
  requestsPerMinute: 1_000_000,
  sessionTokenMinutes: 60,
  signUp: 'invited',
  capGraceSeconds: 300,
  trustedProxies: [],
};
