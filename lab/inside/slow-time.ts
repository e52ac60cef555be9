// Loaded into each Node process of a check: deadlines last as many times longer as the machine is
// slower. Pauses and intervals stay.
const factor = Number(process.env['BERTH_LAB_SLOWNESS'] ?? '1');
const timeout = AbortSignal.timeout.bind(AbortSignal);
AbortSignal.timeout = (ms) => timeout(Math.min(ms * factor, 2 ** 31 - 1));
