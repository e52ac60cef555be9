// Prints the throughput of streamed model responses through the model gateway, relative to the same
// server without it: npm run bench:model-gateway -- [--turns N]
import { gatewayRatios } from './model-gateway/ratio.ts';
import { readOptions } from './world/options.ts';

const options = readOptions({ turns: { type: 'string', default: '5' } });
console.log(JSON.stringify(await gatewayRatios(options.whole('turns', 1, 1_000)), null, 2));
