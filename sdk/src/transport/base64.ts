// Base64 without Node's Buffer.

const BASE64_PIECE = 0x8000;

export function toBase64(bytes: Uint8Array): string {
  let binary = '';
  for (let at = 0; at < bytes.length; at += BASE64_PIECE)
    binary += String.fromCharCode(...bytes.subarray(at, at + BASE64_PIECE));
  return btoa(binary);
}

export function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
