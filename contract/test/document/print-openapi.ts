// Prints openapi.json; with `--full`, the document of every route.
import { fullDocument, publishedDocument } from '../../src/document/openapi.ts';

const document = process.argv.includes('--full') ? fullDocument() : publishedDocument();
process.stdout.write(`${JSON.stringify(document, null, 2)}\n`);
