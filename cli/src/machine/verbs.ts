// Implementations of the host commands, loaded on demand.
import type { Verb } from './run-verb.ts';
import type { Action, Chapter, CommandSpec } from '../program/command-spec.ts';
import { developmentEntries, loadedEntries, SERVICE_HEADING, serviceEntries } from './spec.ts';

const VERBS: Readonly<Record<string, () => Promise<Verb>>> = {
  up: async () => (await import('@berth/machine/verbs/up.ts')).up,
  down: async () => (await import('@berth/machine/verbs/down.ts')).down,
  install: async () => (await import('@berth/machine/verbs/install.ts')).install,
  uninstall: async () => (await import('@berth/machine/verbs/install.ts')).uninstall,
  doctor: async () => (await import('@berth/machine/verbs/doctor.ts')).doctor,
  demo: async () => (await import('@berth/machine/verbs/demo.ts')).demo,
  'keys create': async () => {
    const { createKeyOnMachine } = await import('@berth/machine/verbs/keys.ts');
    return async (context, { name = 'operator' }) => await createKeyOnMachine(context, name);
  },
  'owner-link': async () => (await import('@berth/machine/verbs/owner-link.ts')).makeOwnerLinkOnMachine,
  'sso-off': async () => {
    const { switchSsoOffOnMachine } = await import('@berth/machine/verbs/sso-off.ts');
    return async (context, { org }) => await switchSsoOffOnMachine(context, org);
  },
  'plans set': async () => {
    const { setPlanOnMachine } = await import('@berth/machine/verbs/plans.ts');
    return async (context, { org, plan }) => await setPlanOnMachine(context, org ?? null, plan);
  },
  'secrets show': async () => (await import('@berth/machine/verbs/secrets.ts')).showSecrets,
  'secrets rotate': async () => {
    const { requireSecretName, rotateSecret } = await import('@berth/machine/verbs/secrets.ts');
    return async (context, _flags, [name]) => await rotateSecret(context, requireSecretName(name));
  },
  'secrets retire': async () => {
    const { requireSecretName, retireSecret } = await import('@berth/machine/verbs/secrets.ts');
    return async (context, { force = false }, [name]) => await retireSecret(context, requireSecretName(name), force);
  },
  test: async () => {
    const { test } = await import('@berth/machine/verbs/test.ts');
    return async (context, { name, profile = false, tier, whole = false }, filters) =>
      await test(context, { filters, name, profile, tier, whole });
  },
  bench: async () => {
    const { bench } = await import('@berth/machine/verbs/bench.ts');
    return async (context, _flags, [name = '', ...args]) => await bench(context, name, args);
  },
  chaos: async () => {
    const { chaos } = await import('@berth/machine/verbs/chaos.ts');
    return async (context, _flags, args) => await chaos(context, args);
  },
  fuzz: fuzzOf('fuzz'),
  'fuzz-api': fuzzOf('fuzz-api'),
};

export const machineChapters: readonly Chapter[] = [
  { heading: SERVICE_HEADING, entries: loadedEntries(serviceEntries, loadOf) },
  { heading: 'Development of Berth', entries: loadedEntries(developmentEntries, loadOf) },
];

function fuzzOf(name: 'fuzz' | 'fuzz-api'): () => Promise<Verb> {
  return async () => {
    const { fuzz } = await import('@berth/machine/verbs/fuzz.ts');
    return async (context, _flags, args) => await fuzz(context, name, args);
  };
}

function loadOf(words: string): CommandSpec['load'] {
  return async (): Promise<Action<never>> => {
    const load = VERBS[words];
    if (load === undefined) throw new Error(`nothing runs berth ${words}`);
    const [{ machineVerb }, verb] = await Promise.all([import('./run-verb.ts'), load()]);
    return machineVerb(verb);
  };
}
