// Ethernet frames as programs in a guest could send them, honest or not.
import { GUEST_NETWORK } from '@berth/protocol/guest.ts';
import { GATEWAY_MAC } from '../../src/network/slots/slot.ts';

interface UdpFrame {
  to: string;
  port: number;
  payload: string;
  /** Default: the address assigned to the guest. */
  fromMac?: string;
  toMac?: string;
  from?: string;
  fromPort?: number;
  /** VLAN tag. */
  vlan?: number;
}

const TYPE_IPV4 = 0x0800;
const TYPE_ARP = 0x0806;
const TYPE_VLAN = 0x8100;
const PROTOCOL_UDP = 17;

/** A UDP datagram. */
export function udpFrame(frame: UdpFrame): Buffer {
  const payload = Buffer.from(frame.payload);
  const udp = Buffer.alloc(8);
  udp.writeUInt16BE(frame.fromPort ?? 40_000, 0);
  udp.writeUInt16BE(frame.port, 2);
  // No checksum, which IPv4 allows.
  udp.writeUInt16BE(8 + payload.length, 4);
  const ip = Buffer.alloc(20);
  ip.writeUInt16BE(0x4500, 0);
  ip.writeUInt16BE(28 + payload.length, 2);
  ip.writeUInt8(64, 8);
  ip.writeUInt8(PROTOCOL_UDP, 9);
  addressBytes(frame.from ?? GUEST_NETWORK.address).copy(ip, 12);
  addressBytes(frame.to).copy(ip, 16);
  ip.writeUInt16BE(checksum(ip), 10);
  return Buffer.concat([ethernet(frame, TYPE_IPV4), ip, udp, payload]);
}

/** An unsolicited ARP reply: `address` is at `mac`. */
export function arpClaim(address: string, mac: string, fromMac: string = GUEST_NETWORK.mac): Buffer {
  const arp = Buffer.from([0, 1, 8, 0, 6, 4, 0, 2]);
  const target = [macBytes(GATEWAY_MAC), addressBytes(GUEST_NETWORK.gateway)];
  return Buffer.concat([ethernet({ fromMac }, TYPE_ARP), arp, macBytes(mac), addressBytes(address), ...target]);
}

function ethernet(frame: { fromMac?: string; toMac?: string; vlan?: number }, type: number): Buffer {
  const tag = Buffer.alloc(frame.vlan === undefined ? 2 : 6);
  if (frame.vlan !== undefined) {
    tag.writeUInt16BE(TYPE_VLAN, 0);
    tag.writeUInt16BE(frame.vlan, 2);
  }
  tag.writeUInt16BE(type, tag.length - 2);
  return Buffer.concat([macBytes(frame.toMac ?? GATEWAY_MAC), macBytes(frame.fromMac ?? GUEST_NETWORK.mac), tag]);
}

function macBytes(mac: string): Buffer {
  return Buffer.from(mac.replaceAll(':', ''), 'hex');
}

function addressBytes(address: string): Buffer {
  return Buffer.from(address.split('.').map(Number));
}

function checksum(header: Buffer): number {
  let sum = 0;
  for (let offset = 0; offset < header.length; offset += 2) sum += header.readUInt16BE(offset);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}
