//! The devices that a request selects.

use quarrier_gpu::{DeviceChoice, Error};

use super::device;

#[test]
fn device_choices_parse() {
    let read = |text: &str| text.parse::<DeviceChoice>();
    assert_eq!(read("auto"), Ok(DeviceChoice::Auto));
    assert_eq!(read("cpu"), Ok(DeviceChoice::Cpu));
    assert_eq!(read("gpu"), Ok(DeviceChoice::Gpu(0)));
    assert_eq!(read("gpu:3"), Ok(DeviceChoice::Gpu(3)));
    assert_eq!(read("all"), Ok(DeviceChoice::All));
    for wrong in ["", "gpus", "gpu:", "gpu:-1", "gpu:x", "GPU", "cpu:0"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn without_a_device_a_request_for_one_is_refused_in_one_line() {
    for choice in [DeviceChoice::Gpu(0), DeviceChoice::Gpu(7), DeviceChoice::All] {
        let Err(Error::NoDevice(text)) = choice.choose(Vec::new()) else {
            panic!("{choice:?} was granted")
        };
        assert!(!text.contains('\n') && text.contains("--device cpu"), "{text}");
    }
    for choice in [DeviceChoice::Auto, DeviceChoice::Cpu] {
        assert!(choice.choose(Vec::new()).unwrap().is_empty());
    }
}

#[test]
fn a_missing_device_is_refused_with_the_list_of_devices() {
    let Some(device) = device() else { return };
    let all = vec![device.clone()];
    let Err(error) = DeviceChoice::Gpu(1).choose(all.clone()) else { panic!("there is no gpu:1") };
    assert!(error.to_string().contains("gpu:0 is"), "{error}");
    assert_eq!(DeviceChoice::Gpu(0).choose(all.clone()).unwrap().len(), 1);
    assert_eq!(DeviceChoice::All.choose(all).unwrap().len(), 1);
}
