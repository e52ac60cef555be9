// Prints the throughput of streamed model responses through the model gateway, relative to the same
// server without it: npm run bench:model-gateway -- [--turns N]
import { gatewayRatios } from './model-gateway/ratio.ts';
import { readOptions } from './world/options.ts';

const { turns } = readOptions({ turns: { type: 'string', default: '5' } });
console.log(JSON.stringify(await gatewayRatios(Number(turns)), null, 2));
