//! The most common fields of FIX 4.2 to 5.0.

use super::{Dictionary, FixType};
use FixType::{Boolean, Data, Date, Int, Length, Number, Text, Timestamp};

const FIELDS: [(u32, &str, FixType); 86] = [
    (1, "Account", Text),
    (6, "AvgPx", Number),
    (7, "BeginSeqNo", Int),
    (8, "BeginString", Text),
    (9, "BodyLength", Length),
    (10, "CheckSum", Text),
    (11, "ClOrdID", Text),
    (14, "CumQty", Number),
    (15, "Currency", Text),
    (16, "EndSeqNo", Int),
    (17, "ExecID", Text),
    (18, "ExecInst", Text),
    (21, "HandlInst", Text),
    (22, "SecurityIDSource", Text),
    (30, "LastMkt", Text),
    (31, "LastPx", Number),
    (32, "LastQty", Number),
    (34, "MsgSeqNum", Int),
    (35, "MsgType", Text),
    (36, "NewSeqNo", Int),
    (37, "OrderID", Text),
    (38, "OrderQty", Number),
    (39, "OrdStatus", Text),
    (40, "OrdType", Text),
    (41, "OrigClOrdID", Text),
    (43, "PossDupFlag", Boolean),
    (44, "Price", Number),
    (45, "RefSeqNum", Int),
    (48, "SecurityID", Text),
    (49, "SenderCompID", Text),
    (50, "SenderSubID", Text),
    (52, "SendingTime", Timestamp),
    (54, "Side", Text),
    (55, "Symbol", Text),
    (56, "TargetCompID", Text),
    (57, "TargetSubID", Text),
    (58, "Text", Text),
    (59, "TimeInForce", Text),
    (60, "TransactTime", Timestamp),
    (63, "SettlType", Text),
    (64, "SettlDate", Date),
    (75, "TradeDate", Date),
    (89, "Signature", Data),
    (90, "SecureDataLen", Length),
    (91, "SecureData", Data),
    (93, "SignatureLength", Length),
    (95, "RawDataLength", Length),
    (96, "RawData", Data),
    (97, "PossResend", Boolean),
    (98, "EncryptMethod", Int),
    (99, "StopPx", Number),
    (100, "ExDestination", Text),
    (102, "CxlRejReason", Int),
    (103, "OrdRejReason", Int),
    (108, "HeartBtInt", Int),
    (111, "MaxFloor", Number),
    (112, "TestReqID", Text),
    (122, "OrigSendingTime", Timestamp),
    (123, "GapFillFlag", Boolean),
    (126, "ExpireTime", Timestamp),
    (141, "ResetSeqNumFlag", Boolean),
    (150, "ExecType", Text),
    (151, "LeavesQty", Number),
    (167, "SecurityType", Text),
    (200, "MaturityMonthYear", Text),
    (202, "StrikePrice", Number),
    (207, "SecurityExchange", Text),
    (212, "XmlDataLen", Length),
    (213, "XmlData", Data),
    (262, "MDReqID", Text),
    (268, "NoMDEntries", Int),
    (269, "MDEntryType", Text),
    (270, "MDEntryPx", Number),
    (271, "MDEntrySize", Number),
    (278, "MDEntryID", Text),
    (279, "MDUpdateAction", Text),
    (354, "EncodedTextLen", Length),
    (355, "EncodedText", Data),
    (371, "RefTagID", Int),
    (372, "RefMsgType", Text),
    (373, "SessionRejectReason", Int),
    (380, "BusinessRejectReason", Int),
    (447, "PartyIDSource", Text),
    (448, "PartyID", Text),
    (452, "PartyRole", Int),
    (453, "NoPartyIDs", Int),
];

/// The parties of an order: PartyID, PartyIDSource, PartyRole.
const PARTIES: [u32; 3] = [448, 447, 452];
/// An entry of market data: action, type, price, size and others.
const ENTRIES: [u32; 18] =
    [269, 270, 15, 271, 272, 273, 274, 276, 278, 279, 280, 285, 290, 346, 37, 48, 55, 58];

pub(super) fn dictionary() -> Dictionary {
    let mut dictionary = Dictionary::empty();
    for (tag, name, kind) in FIELDS {
        dictionary.add_field(tag, name, kind);
    }
    let parties = dictionary.add_group(PARTIES.map(|tag| (tag, None)));
    let entries = dictionary.add_group(ENTRIES.map(|tag| (tag, None)));
    dictionary.other = Some(dictionary.add_group([(453, Some(parties)), (268, Some(entries))]));
    dictionary
}
